"""Decides from its reports whether a node works. A node's process reports every second, with the
number of steps that its loop has made. A healthy loop may not renew its lease for a while, because
it registers a million queries or waits for documents. A process that does not report is stopped or
hangs. Times are from any clock. Only observed time counts: a supervisor that was stopped for a
minute has not observed a node to be silent for a minute.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum

#: Time within which a node reports for the first time, on an idle machine with a free slot.
PLACED_WITHIN_S = 10.0
#: A node that has reported and does not report for this long hangs.
SILENT_S = 5.0
#: A node whose loop makes no step for this long hangs, even if its process reports.
STUCK_S = 120.0
#: Maximum time that counts between two observations: on a busy machine, both observations and
#: reports are rarer.
LONGEST_LOOK_S = 0.5
#: The maximum factor by which waiting processes per core extend the start.
MAX_START_FACTOR = 6.0


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The last report of a node's process."""

    beats: int
    steps: int

    @classmethod
    def parse(cls, text: bytes) -> Heartbeat | None:
        beats, _, steps = text.partition(b" ")
        return cls(int(beats), int(steps)) if beats.isdigit() and steps.isdigit() else None


class NodeHealth(StrEnum):
    """The state of a node."""

    STARTING = "starting"
    ALIVE = "alive"
    UNPLACED = "it did not report after its start"
    SILENT = "it no longer reports"
    STUCK = "its loop does not advance"


FAILURES = frozenset({NodeHealth.UNPLACED, NodeHealth.SILENT, NodeHealth.STUCK})


class Vitals:
    """The observations of one node since it was started."""

    def __init__(self) -> None:
        self._last: Heartbeat | None = None
        self._looked_s: float | None = None
        self._waiting_s = self._silent_s = self._stuck_s = 0.0

    @property
    def placed(self) -> bool:
        """Whether it has ever reported."""
        return self._last is not None

    def observe(
        self, now_s: float, heartbeat: Heartbeat | None, *, room: bool, start_factor: float = 1.0
    ) -> NodeHealth:
        """Record its last report. Without a free slot, no first report is expected. A first report
        may take `start_factor` times as long as on an idle machine.
        """
        passed_s = 0.0 if self._looked_s is None else now_s - self._looked_s
        passed_s, self._looked_s = min(passed_s, LONGEST_LOOK_S), now_s
        before, self._last = self._last, heartbeat or self._last
        if self._last is None:
            self._waiting_s += passed_s if room else 0.0
            overdue = self._waiting_s >= PLACED_WITHIN_S * start_factor
            return NodeHealth.UNPLACED if overdue else NodeHealth.STARTING
        beats, steps = (before.beats, before.steps) if before is not None else (-1, -1)
        self._silent_s = 0.0 if self._last.beats != beats else self._silent_s + passed_s
        self._stuck_s = 0.0 if self._last.steps != steps else self._stuck_s + passed_s
        if self._silent_s >= SILENT_S:
            return NodeHealth.SILENT
        return NodeHealth.STUCK if self._stuck_s >= STUCK_S else NodeHealth.ALIVE


def current_start_factor() -> float:
    """Return the factor by which starting takes longer than on an idle machine."""
    return start_factor(os.getloadavg()[0], os.cpu_count() or 1)


def start_factor(load: float, cores: int) -> float:
    return min(MAX_START_FACTOR, max(1.0, load / cores))
