"""Whose job starts next."""

from __future__ import annotations

import pytest

from foundation.sandbox.fair_queue import FairQueue, QueueFull


def test_one_slot_stays_free_of_an_owner_who_has_the_others() -> None:
    queue: FairQueue[str] = FairQueue(slots=3, max_waiting=10)
    for number in range(5):
        queue.add("a", f"a{number}")
    assert [queue.start_next() for _ in range(3)] == ["a0", "a1", None]
    queue.add("b", "b0")
    assert queue.start_next() == "b0"


def test_owners_take_turns_for_a_single_slot() -> None:
    queue: FairQueue[str] = FairQueue(slots=1, max_waiting=10)
    for number in range(3):
        queue.add("a", f"a{number}")
    for owner in ("b", "c"):
        queue.add(owner, f"{owner}0")
    order = []
    while (job := queue.start_next()) is not None:
        order.append(job)
        queue.finish(job[0])
    assert order == ["a0", "b0", "c0", "a1", "a2"]
    assert queue.is_idle


def test_an_owner_without_running_jobs_takes_precedence() -> None:
    queue: FairQueue[str] = FairQueue(slots=3, max_waiting=10)
    for number in range(4):
        queue.add("a", f"a{number}")
    queue.start_next()
    queue.add("b", "b0")
    assert queue.start_next() == "b0"
    assert queue.start_next() == "a1"


def test_the_waiting_jobs_of_an_owner_are_limited() -> None:
    queue: FairQueue[str] = FairQueue(slots=1, max_waiting=2)
    queue.add("a", "a0")
    queue.start_next()
    queue.add("a", "a1")
    queue.add("a", "a2")
    with pytest.raises(QueueFull):
        queue.add("a", "a3")
    queue.add("b", "b0")


def test_a_job_that_is_withdrawn_never_starts() -> None:
    queue: FairQueue[str] = FairQueue(slots=1, max_waiting=2)
    queue.add("a", "a0")
    queue.withdraw("a", "a0")
    assert (queue.start_next(), queue.is_idle) == (None, True)
