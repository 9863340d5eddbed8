"""The log of a run, to diagnose a failure."""

from __future__ import annotations

import threading
import time
from collections import Counter


class RunReport:
    """Prints events as they happen, and collects faults and counts."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.faults: list[str] = []
        self.counts: Counter[str] = Counter()
        self._began_s = time.monotonic()
        self._lock = threading.Lock()
        self.record("seed", str(seed))

    def record(self, source: str, event: str) -> None:
        with self._lock:
            seconds = time.monotonic() - self._began_s
            print(f"{seconds:8.2f} {source:>12}: {event}", flush=True)  # noqa: T201

    def count(self, event: str, times: int = 1) -> None:
        with self._lock:
            self.counts[event] += times

    def fault(self, source: str, problem: str) -> None:
        """Record a violation. The run fails at its next check."""
        self.record(source, f"FAULT {problem}")
        with self._lock:
            self.faults.append(f"{source}: {problem}")

    def end(self) -> None:
        """Print the counts."""
        self.record("seed", f"{self.seed}: {dict(sorted(self.counts.items()))}")
