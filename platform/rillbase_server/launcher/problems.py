"""The problems of the launcher, each with a message and an exit code.

The codes are a contract with scripts, documented in docs/operations/launcher.md.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of launcher commands."""

    OK = 0
    INTERNAL_ERROR = 1
    USAGE = 2
    NOT_RUNNING = 3
    PREREQUISITE_MISSING = 10
    PORT_TAKEN = 11
    DATA_DIRECTORY_IN_USE = 12
    WRONG_OWNER = 13
    NOT_WRITABLE = 14
    DISK_FULL = 15
    SERVICE_FAILED = 16
    UNREACHABLE_FOR_SERVERS = 17
    SECRETS_UNUSABLE = 18
    EXTERNAL_SERVER_UNREACHABLE = 19
    STOP_TIMED_OUT = 20
    BACKUP_FAILED = 21
    KILLED = 130


class LauncherProblem(Exception):
    """A problem that the user can solve: `what` happened, and how to `fix` it."""

    def __init__(self, code: ExitCode, what: str, fix: str = "") -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.fix = fix
