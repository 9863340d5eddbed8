"""One launcher per data directory: an advisory lock that is released with its holder.

The lock is authoritative, not the file: the kernel releases it however the launcher exits. The file
only identifies the holder.
"""

import fcntl
import json
import os
from pathlib import Path
from typing import IO

from .process import ProcessIdentity, boot_id, identify


class InstanceLock:
    """Holds ``path`` locked until ``release``."""

    def __init__(self, path: Path, file: IO[str]) -> None:
        self.path = path
        self._file = file

    @classmethod
    def acquire(cls, path: Path) -> "InstanceLock | None":
        """Return the lock, or None if another process holds it."""
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        file = os.fdopen(descriptor, "r+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        identity = identify(os.getpid())
        file.truncate()
        if identity is not None:
            json.dump(
                {"pid": identity.pid, "started": identity.started, "boot_id": boot_id()}, file
            )
        file.flush()
        return cls(path, file)

    def release(self) -> None:
        """Release the lock for the next launcher."""
        self._file.truncate(0)
        self._file.close()


def lock_holder(path: Path) -> ProcessIdentity | None:
    """Return the running launcher that is recorded in ``path``, or None.

    It only reads: a check must never prevent a launcher from taking the lock.
    """
    try:
        content = json.loads(path.read_text())
        holder = ProcessIdentity(int(content["pid"]), int(content["started"]))
        booted = content["boot_id"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return holder if booted == boot_id() and holder.is_running else None
