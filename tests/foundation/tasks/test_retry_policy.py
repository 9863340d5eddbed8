"""When failed tasks run again, without a clock."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundation.tasks.queues import queue_of
from foundation.tasks.relay import LONGEST_PAUSE_S, pause_s
from foundation.tasks.retry_policy import RetryPolicy


def test_the_longest_delays_double_up_to_the_maximum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "randrange", lambda stop: stop - 1)
    policy = RetryPolicy(max_retries=6, retry_backoff=2, retry_backoff_max=20)
    assert [policy.retry_in_s(attempt) for attempt in range(1, 8)] == [2, 4, 8, 16, 20, 20, None]


def test_tasks_that_failed_together_are_not_retried_together() -> None:
    policy = RetryPolicy()
    assert len({policy.retry_in_s(10) for _ in range(100)}) > 50


@given(attempt=st.integers(1, 1000))
def test_a_delay_is_never_longer_than_the_maximum(attempt: int) -> None:
    delay_s = RetryPolicy(max_retries=1000).retry_in_s(attempt)
    assert delay_s is not None
    assert 0 <= delay_s <= 3600


def test_the_default_policy_gives_a_dependency_an_hour_to_recover(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(random, "randrange", lambda stop: stop // 2)
    policy, clock_s, attempts = RetryPolicy(), 0, [0]
    while (delay_s := policy.retry_in_s(len(attempts))) is not None:
        clock_s += delay_s
        attempts.append(clock_s)
    assert len(attempts) == 13
    assert 3600 < clock_s < 4200
    assert all(later > earlier for earlier, later in pairwise(attempts))


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
