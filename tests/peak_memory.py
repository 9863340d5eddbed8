"""How much memory this process, and with it the test server, comes to hold during a block."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_STATUS = Path("/proc/self/status")
#: Resets the peak to what is resident at the moment (proc_pid_clear_refs(5)).
_RESET = "5"


@dataclass
class PeakMemory:
    """What a block added to the resident memory at its highest point."""

    added_mib: float = 0.0


@contextmanager
def peak_memory() -> Iterator[PeakMemory]:
    """Measure the block, whatever the process needed before."""
    measured = PeakMemory()
    Path("/proc/self/clear_refs").write_text(_RESET)
    before_kib = _kib("VmRSS")
    yield measured
    measured.added_mib = (_kib("VmHWM") - before_kib) / 1024


def _kib(field: str) -> int:
    match = re.search(rf"{field}:\s+(\d+) kB", _STATUS.read_text())
    assert match is not None
    return int(match[1])
