"""Set the checkout up: `make setup`, and first thing in every other target.

Standard library only, since nothing is installed yet. This file holds no syntax newer than
Python 3.4, so that an old interpreter gets as far as the message below.
"""

import sys
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036 - an older interpreter is what this is for
    sys.exit(
        "Python 3.11 or newer is needed, this is " + sys.version.split()[0] + ".\n"
        "  Debian, Ubuntu: sudo apt install python3.11 python3.11-venv\n"
        "  macOS:          brew install python@3.11\n"
        "Then try again, or name it: make PYTHON=/path/to/python3.11 ..."
    )

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.provision.command import main

if __name__ == "__main__":
    sys.exit(main())
