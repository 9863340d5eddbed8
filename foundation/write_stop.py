"""Whether writes are rejected because the disk of the data directory is nearly full. The launcher
keeps a marker file in the data directory while that is the case (`launcher/disk_guard.py`); the
other processes of the machine check for it. Without a launcher, it never exists.
"""

from __future__ import annotations

from pathlib import Path

from foundation.environment import environment

#: Below the data directory. The launcher names the same file.
MARK = Path("run") / "write-stop"


class WritesStopped(Exception):
    """The disk is nearly full, and writes are rejected."""


def in_force() -> bool:
    """Return whether writes are rejected."""
    return (environment().rillbase_data_dir / MARK).exists()


def check() -> None:
    """Raise `WritesStopped` while writes are rejected."""
    if in_force():
        raise WritesStopped
