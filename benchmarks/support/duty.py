"""Limits an attacker's share of the CPU.

A real attacker has separate machines; here it shares the cores with the servers and the measured
clients. So it works only for a fixed share of the time, by its own process's CPU clock, and reports
how much it has used. The data that it sends is generated before it starts.
"""

from __future__ import annotations

import asyncio
import time


class Duty:
    """The CPU share of one process."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._cpu_s, self._wall_s = time.process_time(), time.monotonic()

    @property
    def used_s(self) -> float:
        """CPU time since the attack began, in seconds."""
        return time.process_time() - self._cpu_s

    async def pause(self) -> None:
        """Wait until the process has used no more than its share."""
        ahead_s = self.used_s / self._share - (time.monotonic() - self._wall_s)
        await asyncio.sleep(max(0.0, ahead_s))
