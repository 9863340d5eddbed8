"""How much memory a process comes to hold during a block: this one, or another server's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

#: Resets the peak to what is resident at the moment (proc_pid_clear_refs(5)).
_RESET = "5"


@dataclass
class PeakMemory:
    """What a block added to the resident memory at its highest point."""

    added_mib: float = 0.0


@contextmanager
def peak_memory(process: int | str = "self") -> Iterator[PeakMemory]:
    """Measure the block, whatever the process needed before."""
    measured = PeakMemory()
    place = Path("/proc", str(process))
    (place / "clear_refs").write_text(_RESET)
    before_kib = _kib(place, "VmRSS")
    yield measured
    measured.added_mib = (_kib(place, "VmHWM") - before_kib) / 1024


def _kib(place: Path, field: str) -> int:
    match = re.search(rf"{field}:\s+(\d+) kB", (place / "status").read_text())
    assert match is not None
    return int(match[1])
