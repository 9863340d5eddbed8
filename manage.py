#!/usr/bin/env python3
"""Entry point of every command of Rillbase.

The launcher's commands run without Django, so that they answer at once, and so do `why`, which
asks a server, and `backup`. Everything else is a Django management command. This file is readable
for old Pythons too, so that they get a message instead of a syntax error.
"""

import os
import sys

ROOT = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - see above
LAUNCHER_COMMANDS = ("up", "status", "stop", "doctor")
PREREQUISITE_MISSING = 10


# What a command and the processes that it starts write is for their account alone.
PRIVATE = 0o077


def main() -> int:
    os.umask(PRIVATE)
    if sys.version_info < (3, 11):  # noqa: UP036 - users may run it with an older version
        return _refuse("Rillbase needs Python 3.11 or newer; this is " + sys.version.split()[0])
    sys.path[:0] = [ROOT, os.path.join(ROOT, "platform")]  # noqa: PTH118 - see above
    try:
        if len(sys.argv) > 1 and sys.argv[1] in LAUNCHER_COMMANDS:
            from rillbase_server.launcher.command_line import main as launch

            return launch(sys.argv[1:])
        if len(sys.argv) > 1 and sys.argv[1] == "why":
            from rillbase_server.why_command import main as why

            return why(sys.argv[2:])
        if len(sys.argv) > 1 and sys.argv[1] == "backup":
            from rillbase_server.backup.command_line import main as backup

            return backup(sys.argv[2:])
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "rillbase_server.settings")
        from django.core.management import execute_from_command_line
    except ModuleNotFoundError as missing:
        return _refuse("The Python package %r is not installed." % missing.name)  # noqa: UP031
    execute_from_command_line(sys.argv)
    return 0


def _refuse(what: str) -> int:
    fix = "Run `make run`, which sets everything up, or use .venv/bin/python."
    sys.stderr.write("Error: " + what + "\n" + fix + "\n")
    return PREREQUISITE_MISSING


if __name__ == "__main__":
    sys.exit(main())
