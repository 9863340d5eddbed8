"""The commands of `manage.py`, and the program that runs each.

The launcher's commands run without Django, so that they answer at once, and so do `why`, which
calls a server, and `backup`. All others are Django management commands.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from rillbase_server.launcher.options import NAME, PROGRAM
from rillbase_server.launcher.problems import ExitCode

Program = Callable[[], int]

#: One line for each command, in groups.
GROUPS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "Run Rillbase on this machine": {
            "up": "start everything and stay in the foreground",
            "status": "show what is running: state, pid, uptime, memory",
            "stop": "stop a running instance and wait until it has stopped",
            "doctor": "check for problems and suggest fixes",
            "sign-in-link": "print a link that signs a user in",
        },
        "Operate an installation": {
            "why": "show why a client did or did not receive a change",
            "backup": "create, list, verify, restore, archive and prune backups",
            "kube": "show, plan and apply a tenant's cluster on Kubernetes",
            "check_indexes": "compare the indexes of collections with their documents",
            "resize_grid": "resize the matching grid without downtime",
            "checkpoint_storage": "create a checkpoint of the storage node",
            "raise_installation_epoch": "invalidate resume positions after a backup was restored",
            "issue_sign_in_link": "print a sign-in link, inside the installation's environment",
        },
        "Run one service, as the chart does": {
            "prepare_database": "create the database roles and migrate the schema",
            "await_servers": "wait for the database and the servers of this release",
            "web": "serve the API, the console and the documentation",
            "background": "run all background services in one process",
            "beat": "run the scheduler of periodic tasks",
            "grid": "match writes with live queries",
            "relay": "publish transactions that their writers did not publish",
            "views": "update the views of aggregates",
            "pipeline": "sort and merge analytics tables",
            "sources": "follow tables of tenants' own databases",
        },
    }
)
LAUNCHER = (*GROUPS["Run Rillbase on this machine"], "--version")
SETTINGS = "rillbase_server.settings"
#: Lets the help of a command be shown outside an installation.
NO_DATABASE = "postgresql://unused.invalid/unused"


def program(arguments: Sequence[str]) -> Program:
    """Return what runs a command line. It is imported here, and a missing package raises."""
    match arguments:
        case [] | ["help" | "-h" | "--help"]:
            return _print_overview
        case ["help", name, *_]:
            return program([name, "--help"])
        case ["why", *rest]:
            from rillbase_server.why_command import main as why  # noqa: PLC0415

            return lambda: why(rest)
        case ["backup", *rest]:
            from rillbase_server.backup.command_line import main as backup  # noqa: PLC0415

            return lambda: backup(rest)
        case [name, *_] if name in LAUNCHER:
            from rillbase_server.launcher.command_line import main as launch  # noqa: PLC0415

            return lambda: launch(arguments)
    return _management_command(arguments)


def overview() -> str:
    """Return the list of commands."""
    width = max(len(name) for commands in GROUPS.values() for name in commands)
    lines = [f"Usage: {NAME} COMMAND [OPTIONS]"]
    for title, commands in GROUPS.items():
        lines += ["", f"{title}:"]
        lines += [f"  {name:{width}}  {line}" for name, line in commands.items()]
    lines += [
        "",
        f"`{PROGRAM} help COMMAND` describes a command. Django's own commands work too.",
    ]
    return "\n".join(lines) + "\n"


def _print_overview() -> int:
    sys.stdout.write(overview())
    return ExitCode.OK


def _management_command(arguments: Sequence[str]) -> Program:
    from django.core.management import execute_from_command_line  # noqa: PLC0415

    def run() -> int:
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", SETTINGS)
        if "--help" in arguments:
            os.environ.setdefault("DATABASE_URL", NO_DATABASE)
        try:
            importlib.import_module(os.environ["DJANGO_SETTINGS_MODULE"])
        except ValueError as error:
            sys.stderr.write(f"Error: {_reason(error)}\n")
            return ExitCode.USAGE
        execute_from_command_line([NAME, *arguments])
        return ExitCode.OK

    return run


def _reason(error: ValueError) -> str:
    """Return one line for each setting that is missing or not valid."""
    from pydantic import ValidationError  # noqa: PLC0415

    if not isinstance(error, ValidationError):
        return f"{error}."
    return "\n".join(
        ": ".join([*(str(part).upper() for part in problem["loc"]), _message(problem["msg"])])
        for problem in error.errors()
    )


def _message(text: str) -> str:
    """Return a message of pydantic, which prefixes those of our own checks."""
    return text.removeprefix("Value error, ")
