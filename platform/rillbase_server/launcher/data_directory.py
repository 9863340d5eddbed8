"""The data directory: its layout, and checks of whether it can be used."""

import os
import pwd
import shutil
from dataclasses import dataclass
from pathlib import Path

from .account import Account, closed_ancestor
from .problems import ExitCode, LauncherProblem

MIN_FREE_BYTES = 200 * 1024 * 1024
MIB = 1024 * 1024


@dataclass(frozen=True)
class DataDirectory:
    """The layout below one data directory."""

    root: Path

    @property
    def postgres(self) -> Path:
        return self.root / "postgres"

    @property
    def valkey(self) -> Path:
        return self.root / "valkey"

    @property
    def node(self) -> Path:
        return self.root / "node"

    @property
    def run(self) -> Path:
        return self.root / "run"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def analytics(self) -> Path:
        """The default directory of datasets' files."""
        return self.root / "analytics"

    @property
    def secrets(self) -> Path:
        return self.root / "secrets.json"

    @property
    def lock(self) -> Path:
        return self.run / "lock"

    @property
    def state(self) -> Path:
        return self.run / "state.json"

    @property
    def reserve(self) -> Path:
        """The reserve that is freed when the disk is full."""
        return self.root / "reserve"

    @property
    def write_stop(self) -> Path:
        """The marker file that exists while writes are stopped. Other processes check it."""
        return self.run / "write-stop"

    @property
    def temporary(self) -> Path:
        """The link to the folder for temporary files."""
        return self.run / "temporary"

    @property
    def demo(self) -> Path:
        return self.run / "demo.json"

    @property
    def has_data(self) -> bool:
        """Whether a server has stored anything here."""
        stores = (self.postgres / "data", self.valkey / "appendonlydir", self.node / "db")
        return any(store.exists() for store in stores)

    def create(self) -> None:
        """Create what is missing. Servers with a separate account must pass the root.

        Modes are set separately, since the umask would restrict them on creation. Files that an
        earlier version left readable are in private directories now.
        """
        missing = [path for path in (self.root, *self.root.parents) if not path.exists()]
        for directory in reversed(missing):
            directory.mkdir()
            directory.chmod(0o711 if os.geteuid() == 0 else 0o700)
        for directory in (self.run, self.logs, self.analytics):
            directory.mkdir(exist_ok=True)
            directory.chmod(0o700)


def find_problem(directory: DataDirectory, account: Account | None) -> LauncherProblem | None:
    """Return why ``directory`` cannot be used, without changing anything."""
    root = directory.root
    existing = next(path for path in (root, *root.parents) if path.exists())
    return (
        _shape_problem(root, existing)
        or _owner_problem(root)
        or _access_problem(existing)
        or _space_problem(shutil.disk_usage(existing).free, existing)
        or _reach_problem(directory, account)
    )


def _shape_problem(root: Path, existing: Path) -> LauncherProblem | None:
    if existing.is_dir():
        return None
    return LauncherProblem(
        ExitCode.NOT_WRITABLE,
        f"{root} cannot be a data directory: {existing} is not a directory.",
        "Choose a different one with --data-dir.",
    )


def _owner_problem(root: Path) -> LauncherProblem | None:
    if not root.exists() or root.stat().st_uid == os.geteuid():
        return None
    owner, me = _user(root.stat().st_uid), _user(os.geteuid())
    return LauncherProblem(
        ExitCode.WRONG_OWNER,
        f"The data directory {root} belongs to {owner}, but you are {me}.",
        f"Run this as {owner}, or choose a different directory with --data-dir.",
    )


def _access_problem(existing: Path) -> LauncherProblem | None:
    if os.access(existing, os.W_OK | os.X_OK):
        return None
    return LauncherProblem(
        ExitCode.NOT_WRITABLE,
        f"{existing} is not writable for {_user(os.geteuid())}.",
        "Correct its permissions, or choose a different directory with --data-dir.",
    )


def _space_problem(free_bytes: int, existing: Path) -> LauncherProblem | None:
    if free_bytes >= MIN_FREE_BYTES:
        return None
    return disk_full(existing, f"only {free_bytes // MIB} MiB are free")


def _reach_problem(directory: DataDirectory, account: Account | None) -> LauncherProblem | None:
    if account is None:
        return None
    closed = closed_ancestor(directory.postgres / "data", account)
    if closed is None or closed == directory.postgres:
        return None
    return LauncherProblem(
        ExitCode.UNREACHABLE_FOR_SERVERS,
        f"When started as root, the embedded servers run as {account.name}, which cannot access "
        f"{closed} to reach {directory.root}.",
        "Run this as an ordinary user, or choose an accessible directory, such as --data-dir "
        "/var/lib/rillbase.",
    )


def disk_full(where: Path, detail: str) -> LauncherProblem:
    """Return the problem of a full or nearly full disk."""
    return LauncherProblem(
        ExitCode.DISK_FULL,
        f"The disk that holds {where} is full: {detail}.",
        f"Free some space (at least {MIN_FREE_BYTES // MIB} MiB), or choose a different "
        "directory with --data-dir.",
    )


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
