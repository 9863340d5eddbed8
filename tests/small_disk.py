"""A small file system, which can be filled and emptied."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests import machine

CHUNK = b"\0" * (64 * 1024)


class SmallDisk:
    """A folder on a separate file system."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self, *, leave_bytes: int = 0) -> None:
        """Fill the file system except for so many bytes."""
        with self._ballast.open("ab", buffering=0) as file:
            while (free := self.free_bytes - leave_bytes) > 0:
                file.write(CHUNK[:free])

    def empty(self) -> None:
        """Release the space that `fill` has taken."""
        self._ballast.unlink(missing_ok=True)

    @property
    def free_bytes(self) -> int:
        status = os.statvfs(self.path)
        return status.f_bavail * status.f_frsize


@contextmanager
def small_disk(path: Path, size_mib: int) -> Iterator[SmallDisk]:
    """Mount one at `path` until the block ends. Only root may mount."""
    machine.require_root("mount a small file system")
    path.mkdir()
    options = f"size={size_mib}m,mode=755"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", path], check=True)
    try:
        yield SmallDisk(path)
    finally:
        # Processes with open files there can continue to use them: the mount is gone for all
        # others.
        subprocess.run(["umount", "--lazy", path], check=True)
