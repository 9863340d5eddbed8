"""The command `rillbase-server` of the installed package.

The package holds the server's files below `home`, in the layout of a checkout. None of them is a
package of its own in the environment: names such as `documents` would collide with those of others.
"""

from __future__ import annotations

import runpy
from pathlib import Path

HOME = Path(__file__).resolve().parent / "home"


def main() -> None:
    """Run `manage.py` with the arguments of this command."""
    runpy.run_path(str(HOME / "manage.py"), run_name="__main__")
