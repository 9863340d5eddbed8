"""What can go wrong in a way that the operator can fix."""

from __future__ import annotations

from rillbase_server.launcher.problems import ExitCode, LauncherProblem


class BackupProblem(LauncherProblem):
    """A backup or a restoration cannot be made: `what` happened, and how to `fix` it."""

    def __init__(self, what: str, fix: str = "") -> None:
        super().__init__(ExitCode.BACKUP_FAILED, what, fix)
