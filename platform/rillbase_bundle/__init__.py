"""The command `rillbase-server` of the installed package.

The package holds the server's files below `home`, in the layout of a checkout. None of them is a
package of its own in the environment: names such as `documents` would collide with those of others.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

HOME = Path(__file__).resolve().parent / "home"


def main() -> None:
    """Run `manage.py` with the arguments of this command."""
    if not sys.argv[1:] or sys.argv[1] in {"-h", "--help", "--version"}:
        sys.exit(_describe(sys.argv[1:] or ["--help"]))
    runpy.run_path(str(HOME / "manage.py"), run_name="__main__")


def _describe(arguments: list[str]) -> int:
    """Answer for the launcher: Django's own help needs a database."""
    sys.path[:0] = [str(HOME), str(HOME / "platform")]
    from rillbase_server.launcher.command_line import main as launch  # noqa: PLC0415

    return launch(arguments)
