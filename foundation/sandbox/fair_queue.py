"""Decides which job starts next: owners take turns, and none of them ever has every slot.

With more than one slot, an owner may use all but one, so a job of an owner that has none running
does not wait for another owner's, unless several owners together keep all slots busy.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, TypeVar

Job = TypeVar("Job")


class QueueFull(Exception):
    """The owner has as many jobs waiting as it may have."""


@dataclass(slots=True)
class _Owner(Generic[Job]):
    arrival: int
    waiting: deque[Job] = field(default_factory=deque)
    running: int = 0
    #: When it last started a job; before all others if it has not.
    started: int = -1


class FairQueue(Generic[Job]):
    """Jobs by owner. An owner is known while it has jobs."""

    def __init__(self, slots: int, max_waiting: int) -> None:
        self._slots = slots
        self._per_owner = max(slots - 1, 1)
        self._max_waiting = max_waiting
        self._owners: dict[str, _Owner[Job]] = {}
        self._clock = count()

    @property
    def is_idle(self) -> bool:
        return not self._owners

    @property
    def waiting(self) -> int:
        return sum(len(owner.waiting) for owner in self._owners.values())

    def add(self, owner: str, job: Job) -> None:
        """Queue a job."""
        state = self._owners.setdefault(owner, _Owner(next(self._clock)))
        if len(state.waiting) >= self._max_waiting:
            raise QueueFull
        state.waiting.append(job)

    def start_next(self) -> Job | None:
        """Return the next job, if a slot is free; the job holds the slot from now on."""
        if sum(owner.running for owner in self._owners.values()) >= self._slots:
            return None
        ready = [o for o in self._owners.values() if o.waiting and o.running < self._per_owner]
        if not ready:
            return None
        chosen = min(ready, key=lambda owner: (owner.running, owner.started, owner.arrival))
        chosen.running += 1
        chosen.started = next(self._clock)
        return chosen.waiting.popleft()

    def withdraw(self, owner: str, job: Job) -> None:
        """Remove a waiting job."""
        self._owners[owner].waiting.remove(job)
        self._forget_if_done(owner)

    def finish(self, owner: str) -> None:
        """Free the slot of a job that has ended."""
        self._owners[owner].running -= 1
        self._forget_if_done(owner)

    def _forget_if_done(self, owner: str) -> None:
        state = self._owners[owner]
        if not state.waiting and not state.running:
            del self._owners[owner]
