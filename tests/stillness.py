"""Notices when a process has stopped to compute."""

from __future__ import annotations

import time

import psutil

STILL_S = 1.0


class Stillness:
    """A condition: the process has used no CPU time for a second."""

    def __init__(self, process: psutil.Process) -> None:
        self._process = process
        self._used = -1.0
        self._since = time.monotonic()

    def __call__(self) -> bool:
        used, now = sum(self._process.cpu_times()[:2]), time.monotonic()
        if used != self._used:
            self._used, self._since = used, now
        return now - self._since > STILL_S
