"""Set up the checkout: `make setup`, and the first step of most other targets.

Standard library only, because nothing is installed yet. The syntax of this file is that of
Python 3.4, so that an old interpreter reaches the message below.
"""

import sys
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 - an older interpreter is what this is for
    sys.exit(
        "Python 3.11 or newer is needed, this is " + sys.version.split()[0] + ".\n"
        "  Debian, Ubuntu: sudo apt install python3.11 python3.11-venv\n"
        "  macOS:          brew install python@3.11\n"
        "Then try again, or specify it: make PYTHON=/path/to/python3.11 ..."
    )

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.provision.command import main

if __name__ == "__main__":
    sys.exit(main())
