"""Whether a node that was started does its work, decided from its signs of life.

A node's process gives a sign each second, with the number of steps that its loop has made. A loop
may renew no lease for a while and be well: it takes in a million queries, or waits for documents.
A process that gives no sign is stopped, or hangs as a whole.

Times are of any clock. Only observed time counts: a supervisor that was away for a minute has not
seen a node be silent for a minute.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from enum import StrEnum

#: Within this time a node gives its first sign, if there is room for it on an idle machine.
PLACED_WITHIN_S = 10.0
#: A node that gave signs and gives none for so long hangs.
SILENT_S = 5.0
#: So does one whose loop makes no step for this long, although its process lives.
STUCK_S = 120.0
#: Between two looks counts at most this: on a busy machine looks are rarer, and signs too.
LONGEST_LOOK_S = 0.5
#: On a machine where so many wait for each core, starting takes as many times as long.
MOST_PATIENCE = 6.0


@dataclass(frozen=True, slots=True)
class Sign:
    """The last sign of life of a node's process."""

    beats: int
    steps: int

    @classmethod
    def parse(cls, text: bytes) -> Sign | None:
        beats, _, steps = text.partition(b" ")
        return cls(int(beats), int(steps)) if beats.isdigit() and steps.isdigit() else None


class NodeHealth(StrEnum):
    """How a node stands."""

    STARTING = "starting"
    ALIVE = "alive"
    UNPLACED = "it did not report after its start"
    SILENT = "it no longer reports"
    STUCK = "its loop does not advance"


FAILURES = frozenset({NodeHealth.UNPLACED, NodeHealth.SILENT, NodeHealth.STUCK})


class Vitals:
    """What was seen of one node since it was started."""

    def __init__(self) -> None:
        self._last: Sign | None = None
        self._looked_s: float | None = None
        self._waiting_s = self._silent_s = self._stuck_s = 0.0

    @property
    def placed(self) -> bool:
        """Whether it ever gave a sign."""
        return self._last is not None

    def observe(
        self, now_s: float, sign: Sign | None, *, room: bool, patience: float = 1.0
    ) -> NodeHealth:
        """Record its last sign. Without room for it, no first sign is expected.

        A first sign may take `patience` times as long as on an idle machine.
        """
        passed_s = 0.0 if self._looked_s is None else now_s - self._looked_s
        passed_s, self._looked_s = min(passed_s, LONGEST_LOOK_S), now_s
        before, self._last = self._last, sign or self._last
        if self._last is None:
            self._waiting_s += passed_s if room else 0.0
            overdue = self._waiting_s >= PLACED_WITHIN_S * patience
            return NodeHealth.UNPLACED if overdue else NodeHealth.STARTING
        beats, steps = (before.beats, before.steps) if before is not None else (-1, -1)
        self._silent_s = 0.0 if self._last.beats != beats else self._silent_s + passed_s
        self._stuck_s = 0.0 if self._last.steps != steps else self._stuck_s + passed_s
        if self._silent_s >= SILENT_S:
            return NodeHealth.SILENT
        return NodeHealth.STUCK if self._stuck_s >= STUCK_S else NodeHealth.ALIVE


def patience_now() -> float:
    """Return how many times as long as on an idle machine starting takes on this one."""
    return patience(os.getloadavg()[0], os.cpu_count() or 1)


def patience(load: float, cores: int) -> float:
    return min(MOST_PATIENCE, max(1.0, load / cores))
