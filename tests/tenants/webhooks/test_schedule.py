"""The schedule of deliveries, on a virtual clock."""

from __future__ import annotations

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.webhook_events import matches
from tenants.webhooks.attempt import DeliveryAttempt
from tenants.webhooks.handshake import echoes
from tenants.webhooks.schedule import (
    LONGEST_HOLD_S,
    SHORTEST_HOLD_S,
    DeliveryVerdict,
    decide_retry,
    hold_s,
    is_hopeless,
)


def _answered(status: int) -> DeliveryAttempt:
    return DeliveryAttempt(status, "", "", 1)


def _no_answer(*, refused: bool = False) -> DeliveryAttempt:
    return DeliveryAttempt(None, "target_timeout: too slow", "", 10_000, refused)


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_any_status_of_success_ends_a_delivery(status: int) -> None:
    assert decide_retry(_answered(status), 1).verdict is DeliveryVerdict.DELIVERED


@pytest.mark.parametrize("status", [199, 301, 302, 400, 404, 429, 500, 503])
def test_every_other_status_is_worth_another_attempt(status: int) -> None:
    assert decide_retry(_answered(status), 1).verdict is DeliveryVerdict.RETRY


def test_status_410_ends_all_deliveries() -> None:
    assert decide_retry(_answered(410), 1).verdict is DeliveryVerdict.GONE


def test_a_url_that_may_not_be_called_is_not_tried_again() -> None:
    assert decide_retry(_no_answer(refused=True), 1).verdict is DeliveryVerdict.FAILED


def test_a_dead_receiver_is_tried_ten_times_over_two_days() -> None:
    clock_s, moments, attempts = 0.0, [], 0
    while True:
        moments.append(clock_s)
        attempts += 1
        after = decide_retry(_no_answer(), attempts, lambda: 0.0)
        if after.verdict is DeliveryVerdict.FAILED:
            break
        clock_s += after.pause_s
    assert moments[:4] == [0, 5, 35, 155]
    assert len(moments) == 10
    hours = clock_s / 3600
    assert 46 < hours < 47, "with luck's fifth added, two days"


@given(attempts=st.integers(1, 9), luck=st.floats(0, 1, exclude_max=True))
def test_jitter_lengthens_a_pause_by_a_fifth_at_most(attempts: int, luck: float) -> None:
    least = decide_retry(_no_answer(), attempts, lambda: 0.0).pause_s
    assert least <= decide_retry(_no_answer(), attempts, lambda: luck).pause_s <= least * 1.2


@given(failing_s=st.integers(0, 10**9))
def test_a_failing_webhook_is_put_on_hold_for_seconds_to_minutes(failing_s: int) -> None:
    assert SHORTEST_HOLD_S <= hold_s(datetime.timedelta(seconds=failing_s)) <= LONGEST_HOLD_S


def test_a_webhook_is_disabled_after_three_days_of_failures() -> None:
    assert not is_hopeless(datetime.timedelta(days=2, hours=23))
    assert is_hopeless(datetime.timedelta(days=3))


@pytest.mark.parametrize(
    ("patterns", "event_type", "wanted"),
    [
        (["*"], "api_key.created", True),
        (["api_key.created"], "api_key.created", True),
        (["api_key.created"], "api_key.revoked", False),
        (["member.*", "api_key.*"], "api_key.revoked", True),
        (["api_key.*"], "api_keys.revoked", False),
        (["api.*"], "api_key.revoked", False),
        (["api_key.*"], "api_key", False),
        ([], "api_key.created", False),
    ],
)
def test_events_are_chosen_exactly_by_family_or_all(
    patterns: list[str], event_type: str, *, wanted: bool
) -> None:
    assert matches(patterns, event_type) is wanted


@pytest.mark.parametrize(
    ("answer", "confirmed"),
    [
        ('{"challenge":"abc"}', True),
        ('{"challenge": "abc", "more": 1}', True),
        ("abc", True),
        ("abc\n", True),
        ('"abc"', True),
        ("", False),
        ("abcd", False),
        ('{"challenge":"abcd"}', False),
        ('{"challenge":null}', False),
        ('["abc"]', False),
        ("é", False),
    ],
)
def test_a_handshake_is_confirmed_by_the_challenge_and_nothing_else(
    answer: str, *, confirmed: bool
) -> None:
    assert echoes(answer, "abc") is confirmed
