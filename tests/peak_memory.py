"""Measures the peak memory of a process during a block: this process or another server's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

#: Resets the peak to the current resident memory (proc_pid_clear_refs(5)).
_RESET = "5"


@dataclass
class PeakMemory:
    """The increase of the resident memory in a block, at its peak."""

    added_mib: float = 0.0


@contextmanager
def peak_memory(process: int | str = "self") -> Iterator[PeakMemory]:
    """Measure the block, regardless of earlier memory use."""
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
