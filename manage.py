#!/usr/bin/env python3
"""Entry point of every command of Rillbase; `manage.py help` lists them.

This file is readable for old Pythons too, so that they get a message instead of a syntax error.
"""

import os
import sys

ROOT = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - see above
PREREQUISITE_MISSING = 10


# What a command and the processes that it starts write is for their account alone.
PRIVATE = 0o077


def main() -> int:
    os.umask(PRIVATE)
    if sys.version_info < (3, 11):  # noqa: UP036 - users may run it with an older version
        return _refuse("Rillbase needs Python 3.11 or newer; this is " + sys.version.split()[0])
    sys.path[:0] = [ROOT, os.path.join(ROOT, "platform")]  # noqa: PTH118 - see above
    try:
        from rillbase_server.commands import program

        run = program(sys.argv[1:])
    except ModuleNotFoundError as missing:
        return _refuse("The Python package %r is not installed." % missing.name)  # noqa: UP031
    return run()


def _refuse(what: str) -> int:
    fix = "Run `make run`, which sets everything up, or use .venv/bin/python."
    sys.stderr.write("Error: " + what + "\n" + fix + "\n")
    return PREREQUISITE_MISSING


if __name__ == "__main__":
    sys.exit(main())
