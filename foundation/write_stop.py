"""Whether writes are refused because the disk of the data directory is nearly full.

The launcher puts a mark into the data directory while that is so (`launcher/disk_guard.py`); the
other processes of the machine look for it. Without a launcher there never is one.
"""

from __future__ import annotations

from pathlib import Path

from foundation.environment import environment

#: Below the data directory. The launcher names the same file.
MARK = Path("run") / "write-stop"


class WritesStopped(Exception):
    """The disk is nearly full, and writes are refused."""


def in_force() -> bool:
    """Tell whether writes are refused."""
    return (environment().rillbase_data_dir / MARK).exists()


def check() -> None:
    """Raise `WritesStopped` while writes are refused."""
    if in_force():
        raise WritesStopped
