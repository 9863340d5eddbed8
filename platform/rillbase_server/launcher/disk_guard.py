"""Stops writes before a disk of the data directory is full, and allows them again afterwards.

PostgreSQL needs free space: it exits if it cannot extend its log, and on a full disk it rejects
even connections that only read. So the launcher keeps a reserve, a file of allocated blocks. When
little space is free, it deletes the reserve and makes PostgreSQL reject writes: the space is then
used for connections, checkpoints, sign-ins and the shutdown. Once space has been freed, the reserve
is created again and writes resume.

A marker file in the data directory notifies other processes and the next start.
"""

import asyncio
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path

from .account import Account, set_owner
from .data_directory import MIB, DataDirectory
from .problems import ExitCode, LauncherProblem

SETTING = "RILLBASE_DISK_RESERVE_MIB"
DEFAULT_RESERVE_MIB = 64
#: Two segments of PostgreSQL's log: writes stop while there is still room for the next one.
STOP_BELOW_BYTES = 32 * MIB
#: Free space required besides the reserve for writes to resume, so they do not stop again soon.
RESUME_ABOVE_BYTES = 96 * MIB
POLL_S = 0.5


class GuardAction(Enum):
    """The result of a check of the disk."""

    NONE = auto()
    STOP = auto()
    RESUME = auto()
    RESERVE = auto()


@dataclass(frozen=True)
class DiskState:
    """The inputs of the guard: the fullest disk, and whether each disk has its reserve."""

    free_bytes: int
    reserve_bytes: int
    is_reserved: bool
    is_stopped: bool


def decide(disk: DiskState) -> GuardAction:
    """Return the due action."""
    has_room = disk.free_bytes >= disk.reserve_bytes + RESUME_ABOVE_BYTES
    if disk.is_stopped:
        return GuardAction.RESUME if has_room else GuardAction.NONE
    if disk.free_bytes < STOP_BELOW_BYTES:
        return GuardAction.STOP
    if has_room and not disk.is_reserved:
        return GuardAction.RESERVE
    return GuardAction.NONE


def reserve_bytes() -> int:
    """Return the size of the reserve from the environment."""
    text = os.environ.get(SETTING, "") or str(DEFAULT_RESERVE_MIB)
    if not text.isdigit():
        raise LauncherProblem(ExitCode.USAGE, f"{SETTING} must be a number of MiB, not {text!r}.")
    return int(text) * MIB


class PostgresWrites:
    """The file of PostgreSQL's configuration that stops and allows writes.

    Only the default of transactions changes: roles that the installation depends on (sign-in,
    housekeeping) have a separate setting that allows writes.
    """

    def __init__(self, data: Path, account: Account | None) -> None:
        self._data = data
        self._file = data / "rillbase.conf"
        self._account = account

    def include(self) -> None:
        """Include the file in PostgreSQL's configuration. Older clusters lack it at a start."""
        main = self._data / "postgresql.conf"
        line = f"include_if_exists = '{self._file.name}'"
        if main.exists() and line not in main.read_text().splitlines():
            with main.open("a") as file:
                file.write(f"\n{line}\n")

    def set(self, *, stopped: bool) -> None:
        """Write the file; it takes effect when PostgreSQL starts or reloads its configuration."""
        if not self._data.exists():
            return
        self._file.write_text(f"default_transaction_read_only = {'on' if stopped else 'off'}\n")
        set_owner(self._file, self._account)

    def hand_over(self, path: Path) -> None:
        """Give PostgreSQL ownership of a file in its directory, which a base backup has to read."""
        set_owner(path, self._account)


def guarded_reserves(directory: DataDirectory) -> list[Path]:
    """Return the path of the reserve on each disk that PostgreSQL uses.

    PostgreSQL, its data or its log may be on separate disks. In its log directory, PostgreSQL
    ignores files that are not named like segments.
    """
    data = directory.postgres / "data"
    paths = [
        directory.reserve,
        directory.postgres / "reserve",
        data / "rillbase.reserve",
        data / "pg_wal" / "rillbase.reserve",
    ]
    reserves: dict[int, Path] = {}
    for path in paths:
        if path.parent.exists():
            reserves.setdefault(path.parent.stat().st_dev, path)
    return list(reserves.values())


class DiskGuard:
    """Watches the disks of one data directory.

    `retry` is called when there may be space again for a service that failed without it.
    """

    def __init__(
        self,
        directory: DataDirectory,
        writes: PostgresWrites,
        *,
        reload: Callable[[], None],
        retry: Callable[[], None],
        report: Callable[[str, bool], None],
    ) -> None:
        self._directory = directory
        self._writes = writes
        self._reload = reload
        self._retry = retry
        self._report = report
        self._reserve_bytes = reserve_bytes()

    async def run(self) -> None:
        """Check periodically."""
        while True:
            self.check()
            await asyncio.sleep(POLL_S)

    def check(self) -> None:
        """Check the disk and act. A step that fails is retried at the next check."""
        try:
            self._carry_out(decide(self._read_disk()))
        except OSError as error:
            self._report(f"the disk cannot be checked: {error}", False)

    def _read_disk(self) -> DiskState:
        reserves = guarded_reserves(self._directory)
        return DiskState(
            free_bytes=min(shutil.disk_usage(path.parent).free for path in reserves),
            reserve_bytes=self._reserve_bytes,
            is_reserved=all(map(Path.exists, reserves)) or not self._reserve_bytes,
            is_stopped=self._directory.write_stop.exists(),
        )

    def _carry_out(self, action: GuardAction) -> None:
        match action:
            case GuardAction.STOP:
                self._stop()
            case GuardAction.RESUME:
                self._resume()
            case GuardAction.RESERVE:
                self._create_reserves()
            case GuardAction.NONE:
                pass

    def _stop(self) -> None:
        # Free the reserves first: the next steps need space.
        for reserve in guarded_reserves(self._directory):
            reserve.unlink(missing_ok=True)
        self._directory.write_stop.touch()
        self._writes.set(stopped=True)
        self._reload()
        self._retry()
        needed_mib = (self._reserve_bytes + RESUME_ABOVE_BYTES) // MIB
        self._report(
            f"the disk is nearly full: writes are rejected until {needed_mib} MiB are free", False
        )

    def _resume(self) -> None:
        self._create_reserves()
        self._writes.set(stopped=False)
        self._reload()
        self._retry()
        # Last, so that the next check repeats these steps after a kill.
        self._directory.write_stop.unlink(missing_ok=True)
        self._report("the disk has space again: writes are accepted", True)

    def _create_reserves(self) -> None:
        if not self._reserve_bytes:
            return
        for path in guarded_reserves(self._directory):
            if not path.exists():
                self._create_reserve(path)

    def _create_reserve(self, path: Path) -> None:
        descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, self._reserve_bytes)
        except OSError:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        if path != self._directory.reserve:
            self._writes.hand_over(path)
