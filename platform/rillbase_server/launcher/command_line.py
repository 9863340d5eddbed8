"""The command line of the launcher."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rillbase_server.version import VERSION

from .options import DEFAULT_HOST, DEFAULT_PORT, NAME, UpOptions, default_data_dir
from .problems import ExitCode, LauncherProblem

MAX_PORT = 65_535
MAX_WORKERS = 64


def main(arguments: Sequence[str]) -> int:
    """Run one command; report problems as a message and an exit code."""
    parsed = _parser().parse_args(arguments)
    try:
        return int(_run(parsed))
    except LauncherProblem as error:
        sys.stdout.flush()
        sys.stderr.write(f"Error: {error.what}\n")
        if error.fix:
            sys.stderr.write(f"{error.fix}\n")
        return int(error.code)
    except KeyboardInterrupt:  # before a service was started
        return int(ExitCode.OK)


def _run(parsed: argparse.Namespace) -> ExitCode:
    # Imported lazily, so `status` and `stop` start quickly.
    if parsed.command == "up":
        from .up import up  # noqa: PLC0415

        return up(_options(parsed))
    if parsed.command == "status":
        from .status import status  # noqa: PLC0415

        return status(parsed.data_dir.absolute(), as_json=parsed.json)
    if parsed.command == "stop":
        from .stop import stop  # noqa: PLC0415

        return stop(parsed.data_dir.absolute())
    if parsed.command == "sign-in-link":
        from .sign_in import print_sign_in_link  # noqa: PLC0415

        return print_sign_in_link(parsed.data_dir.absolute(), parsed.email)
    from .doctor import doctor  # noqa: PLC0415

    return doctor(UpOptions(parsed.data_dir.absolute(), parsed.host, parsed.port))


def _options(parsed: argparse.Namespace) -> UpOptions:
    ready_file = parsed.ready_file.absolute() if parsed.ready_file else None
    if ready_file and not ready_file.parent.is_dir():
        raise LauncherProblem(
            ExitCode.USAGE,
            f"The ready file's directory {ready_file.parent} does not exist.",
            "Create it, or specify a different --ready-file.",
        )
    return UpOptions(
        data_dir=parsed.data_dir.absolute(),
        host=parsed.host,
        port=parsed.port,
        ready_file=ready_file,
        workers=parsed.workers,
        demo=not parsed.no_demo,
        verbose=parsed.verbose,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=NAME, description="Run Rillbase.")
    parser.add_argument("--version", action="version", version=VERSION)
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start everything and stay in the foreground")
    status = commands.add_parser("status", help="show what is running: state, pid, uptime, memory")
    stop = commands.add_parser("stop", help="stop a running instance and wait until it has stopped")
    doctor = commands.add_parser("doctor", help="check for problems and suggest fixes")
    sign_in = commands.add_parser("sign-in-link", help="print a link that signs a user in")
    for command in (up, status, stop, doctor, sign_in):
        command.add_argument(
            "--data-dir",
            type=Path,
            default=default_data_dir(),
            help="directory for servers, secrets and logs (default: %(default)s)",
        )
    for command in (up, doctor):
        command.add_argument("--host", default=DEFAULT_HOST, help="default: %(default)s")
        command.add_argument(
            "--port",
            type=_port,
            default=DEFAULT_PORT,
            help="default: %(default)s; 0: any free port",
        )
    up.add_argument(
        "--ready-file",
        type=Path,
        help="write the URL and the login to this file when everything is ready",
    )
    up.add_argument("--workers", type=_workers, default=1, help="web processes (default: 1)")
    up.add_argument("--no-demo", action="store_true", help="do not create a demo tenant")
    up.add_argument("--verbose", action="store_true", help="show all log lines")
    sign_in.add_argument("email", nargs="?", help="default: the user of the demo tenant")
    status.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _port(text: str) -> int:
    return _bounded_int(text, 0, MAX_PORT)


def _workers(text: str) -> int:
    return _bounded_int(text, 1, MAX_WORKERS)


def _bounded_int(text: str, minimum: int, maximum: int) -> int:
    number = int(text)
    if not minimum <= number <= maximum:
        raise argparse.ArgumentTypeError(f"must be between {minimum} and {maximum}")
    return number
