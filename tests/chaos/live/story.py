"""What happened in a run, to be read when it has failed."""

from __future__ import annotations

import threading
import time
from collections import Counter


class Story:
    """Prints what happens as it happens, and keeps what must not and how much of all there was."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.faults: list[str] = []
        self.counts: Counter[str] = Counter()
        self._began_s = time.monotonic()
        self._lock = threading.Lock()
        self.tell("seed", str(seed))

    def tell(self, who: str, what: str) -> None:
        with self._lock:
            seconds = time.monotonic() - self._began_s
            print(f"{seconds:8.2f} {who:>12}: {what}", flush=True)  # noqa: T201

    def count(self, what: str, times: int = 1) -> None:
        with self._lock:
            self.counts[what] += times

    def fault(self, who: str, what: str) -> None:
        """Note what must never be. The run ends at the next look."""
        self.tell(who, f"FAULT {what}")
        with self._lock:
            self.faults.append(f"{who}: {what}")

    def end(self) -> None:
        """Tell the figures."""
        self.tell("seed", f"{self.seed}: {dict(sorted(self.counts.items()))}")
