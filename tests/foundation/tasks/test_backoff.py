"""The schedule of retries, on a virtual clock."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundation.tasks.backoff import Backoff, RetryPolicy
from foundation.tasks.queues import queue_of
from foundation.tasks.relay import LONGEST_PAUSE_S, pause_s

NO_LUCK, ALL_LUCK = (lambda: 0.0), (lambda: 0.999999)


def test_delays_triple_until_the_longest() -> None:
    backoff = Backoff(first_s=2, factor=3, longest_s=60)
    fullest = [round(backoff.delay_s(n, ALL_LUCK), 3) for n in (1, 2, 3, 4, 5, 6)]
    assert fullest == [2, 6, 18, 54, 60, 60]


def test_half_of_a_delay_is_random() -> None:
    backoff = Backoff(first_s=10, factor=1)
    assert backoff.delay_s(1, NO_LUCK) == 5
    assert backoff.delay_s(1, lambda: 0.5) == 7.5


@given(failures=st.integers(1, 100_000), luck=st.floats(0, 1, exclude_max=True))
def test_a_delay_is_never_longer_than_the_longest_however_often_it_failed(
    failures: int, luck: float
) -> None:
    backoff = Backoff()
    assert 0 < backoff.delay_s(failures, lambda: luck) <= backoff.longest_s


def test_the_usual_policy_gives_a_dependency_half_an_hour_to_come_back() -> None:
    policy, clock_s, attempts = RetryPolicy(), 0.0, []
    attempt: int = 1
    while True:
        attempts.append(clock_s)
        delay_s = policy.retry_in_s(attempt, lambda: 0.5)
        if delay_s is None:
            break
        clock_s += delay_s
        attempt += 1
    assert len(attempts) == 8
    assert 1500 < clock_s < 2200
    assert all(later > earlier for earlier, later in pairwise(attempts))


def test_there_is_no_delay_before_the_first_failure() -> None:
    with pytest.raises(ValueError, match="at least one failure"):
        Backoff().delay_s(0)


@pytest.mark.parametrize(
    ("task_name", "queue"),
    [
        ("tenants.webhooks.work", "webhooks"),
        ("tenants.mail.send", "mail"),
        ("documents.collections.expiry", "expiry"),
        ("realtime.clusters.reconcile", "clusters"),
        ("tenants.sweeps.usage_roll_up", "default"),
        ("tenants.webhooksomething.work", "default"),
    ],
)
def test_a_task_goes_to_the_queue_that_its_name_contains(task_name: str, queue: str) -> None:
    assert queue_of(task_name) == queue


def test_the_relay_pauses_ever_longer_but_never_for_long() -> None:
    pauses = [pause_s(failures) for failures in range(1, 2000, 100)]
    assert pauses == sorted(pauses)
    assert pause_s(1) == 1
    assert pauses[-1] == LONGEST_PAUSE_S
