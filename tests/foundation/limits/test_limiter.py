"""Limits as requests meet them: counted in a real Valkey, and without it."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import ceil
from uuid import uuid4

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foundation import metrics
from foundation.limits import Decision, Limit, Limiter
from foundation.limits.gcra import US_PER_S, backlog, decide
from tests.own_valkey import OwnValkey


def fresh(name: str = "tenant", *, rate: float = 0.001, burst: int = 5, cost: int = 1) -> Limit:
    """Return a limit with a bucket that no other test uses; by default it hardly refills."""
    return Limit(name, uuid4().hex, rate, burst, cost)


def until(condition: Callable[[], bool], what: str, timeout_s: float = 10) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain until {what}"
        time.sleep(0.01)


def test_two_processes_share_one_bucket(valkey: OwnValkey, patient_limiter: Limiter) -> None:
    other = Limiter(valkey.url, answer_timeout_s=10)
    limit = fresh(burst=4)
    answers = [x.check([limit]).allowed for _ in range(3) for x in (patient_limiter, other)]
    other.close()
    assert answers == [True] * 4 + [False] * 2


def test_a_request_that_one_limit_rejects_changes_nothing_in_valkey(
    valkey: OwnValkey, patient_limiter: Limiter
) -> None:
    tenant, key = fresh("tenant", burst=10), fresh("key", burst=1)
    assert patient_limiter.check([tenant, key]).allowed
    with valkey.client() as client:
        before = client.get(tenant.storage_key)
        refusal = patient_limiter.check([tenant, key])
        assert client.get(tenant.storage_key) == before
    assert (refusal.allowed, refusal.policy, refusal.states[0].remaining) == (False, "key", 9)


def test_a_bucket_expires_when_it_has_filled_up_again(
    valkey: OwnValkey, patient_limiter: Limiter
) -> None:
    limit = fresh(rate=10, burst=50, cost=20)
    patient_limiter.check([limit])
    with valkey.client() as client:
        assert 0 < client.pttl(limit.storage_key) <= 2001
        assert client.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}


def test_the_script_survives_being_flushed(valkey: OwnValkey, patient_limiter: Limiter) -> None:
    with valkey.client() as client:
        client.script_flush()
    limit = fresh()
    assert [patient_limiter.check([limit]).remaining for _ in range(2)] == [4, 3]


def test_many_threads_together_do_not_exceed_the_rate(patient_limiter: Limiter) -> None:
    limit = fresh(rate=500, burst=20)
    begin = time.monotonic()
    stop = threading.Event()

    def hammer(_: int) -> int:
        admitted = 0
        while not stop.is_set():
            admitted += patient_limiter.check([limit]).allowed
        return admitted

    with ThreadPoolExecutor(8) as pool:
        running = pool.map(hammer, range(8))
        threading.Timer(0.5, stop.set).start()
        total = sum(running)
    elapsed = time.monotonic() - begin
    assert 20 < total <= 500 * elapsed + 20


async def test_the_asynchronous_form_counts_in_the_same_buckets(valkey: OwnValkey) -> None:
    limiter = Limiter(valkey.url, answer_timeout_s=10)
    limit = fresh(burst=3)
    first = limiter.check([limit]).remaining
    rest = await asyncio.gather(*(limiter.acheck([limit]) for _ in range(4)))
    await limiter.aclose()
    assert first == 2
    assert sum(d.allowed for d in rest) == 2


STEPS = st.lists(
    st.tuples(
        st.sets(st.sampled_from(["tenant", "key", "route"]), min_size=1),
        st.integers(0, 60),
    ),
    min_size=1,
    max_size=25,
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    rates=st.lists(st.floats(50, 50_000), min_size=3, max_size=3),
    bursts=st.lists(st.integers(1, 50), min_size=3, max_size=3),
    stored_us=st.lists(st.integers(-(10**6), 10**7), min_size=3, max_size=3),
    steps=STEPS,
)
def test_the_script_decides_as_the_model_does(
    valkey: OwnValkey,
    patient_limiter: Limiter,
    rates: list[float],
    bursts: list[int],
    stored_us: list[int],
    steps: list[tuple[set[str], int]],
) -> None:
    shapes = dict(zip(("tenant", "key", "route"), zip(rates, bursts, strict=True), strict=True))
    key = uuid4().hex
    with valkey.client() as client:
        seconds, micros = client.time()
        arrivals: dict[str, int] = {}
        for name, offset in zip(shapes, stored_us, strict=True):
            arrivals[name] = seconds * US_PER_S + micros + offset
            client.set(f"rillbase:limit:{name}:{key}", arrivals[name])
        for names, cost in steps:
            limits = [Limit(n, key, *shapes[n], cost) for n in sorted(names)]
            decision = patient_limiter.check(limits)
            stored = {
                x.name: int(result) if (result := client.get(x.storage_key)) else None
                for x in limits
            }
            now = _moment_of(decision, arrivals, stored)
            if now is None:
                continue
            expected = decide(
                limits, [backlog(arrivals[x.name], now, x.tolerance_us) for x in limits]
            )
            assert decision == expected
            if decision.allowed:
                arrivals.update(
                    {s.limit.name: now + s.backlog_us for s in expected.states if s.backlog_us}
                )


def _moment_of(
    decision: Decision, arrivals: dict[str, int], stored: dict[str, int | None]
) -> int | None:
    """Infer at which time of Valkey's clock the script ran, from what it left or found."""
    for state in decision.states:
        left = stored[state.limit.name]
        if decision.allowed and state.backlog_us and left is not None:
            return left - state.backlog_us
        if not decision.allowed and 0 < state.backlog_us < state.limit.tolerance_us:
            return arrivals[state.limit.name] - state.backlog_us
    return None


def test_without_valkey_limits_are_counted_per_process(
    own_valkey: OwnValkey, caplog: pytest.LogCaptureFixture
) -> None:
    limiter = Limiter(own_valkey.url)
    limit = fresh(burst=3)
    limiter.check([limit])
    own_valkey.kill()
    with caplog.at_level(logging.INFO, "foundation.limits"):
        answers = [limiter.check([limit]).allowed for _ in range(5)]
        assert answers == [True] * 3 + [False] * 2
        assert not limiter.shared
        assert metrics.LIMITS_STORE_UP._value.get() == 0
        own_valkey.start()
        until(lambda: limiter.check([fresh()]).allowed and limiter.shared, "Valkey counts again")
    assert metrics.LIMITS_STORE_UP._value.get() == 1
    assert [r.message for r in caplog.records] == [
        "Valkey does not respond: limits are counted per process until it does",
        "Valkey responds again: limits are shared between processes",
    ]
    assert [limiter.check([limit]).remaining for _ in range(2)] == [2, 1]
    limiter.close()


def test_a_frozen_valkey_delays_one_request_and_not_the_next_ones(own_valkey: OwnValkey) -> None:
    limiter = Limiter(own_valkey.url)
    limiter.check([fresh()])
    own_valkey.freeze()
    waits = []
    for _ in range(100):
        begin = time.monotonic()
        assert limiter.check([fresh()]).allowed
        waits.append(time.monotonic() - begin)
    slow = [w for w in waits if w > 0.04]
    own_valkey.thaw()
    assert len(slow) <= ceil(sum(waits) / 0.25) + 1
    until(lambda: limiter.check([fresh()]).allowed and limiter.shared, "Valkey counts again")
    limiter.close()


async def test_the_asynchronous_check_works_without_valkey_and_recovers(
    own_valkey: OwnValkey,
) -> None:
    limiter = Limiter(own_valkey.url)
    limit = fresh(burst=2)
    assert (await limiter.acheck([limit])).allowed
    own_valkey.kill()
    assert [(await limiter.acheck([limit])).allowed for _ in range(3)] == [True, True, False]
    own_valkey.start()
    deadline = time.monotonic() + 10
    while not limiter.shared and time.monotonic() < deadline:
        await limiter.acheck([fresh()])
        await asyncio.sleep(0.01)
    assert limiter.shared
    await limiter.aclose()


def test_connections_that_a_restart_has_ended_are_replaced_unnoticed(
    own_valkey: OwnValkey,
) -> None:
    limiter = Limiter(own_valkey.url, answer_timeout_s=10, connect_timeout_s=10)
    limiter.check([fresh()])
    own_valkey.kill()
    own_valkey.start()
    assert limiter.check([fresh()]).allowed
    assert limiter.shared
    limiter.close()


def test_the_login_and_database_number_come_from_the_url(valkey_url: str) -> None:
    limiter = Limiter(valkey_url, answer_timeout_s=10, connect_timeout_s=10)
    limit = fresh()
    limiter.check([limit])
    with redis.Redis.from_url(valkey_url) as client:
        assert client.exists(limit.storage_key)
    assert limiter.shared
    limiter.close()


def test_a_valkey_that_rejects_the_login_counts_as_unavailable(valkey_url: str) -> None:
    limiter = Limiter(valkey_url.replace(":tests@", ":wrong@"))
    assert limiter.check([fresh()]).allowed
    assert not limiter.shared
    limiter.close()


def test_a_full_valkey_counts_as_unavailable(own_valkey: OwnValkey) -> None:
    with own_valkey.client() as client:
        client.config_set("maxmemory", 1)
    limiter = Limiter(own_valkey.url)
    assert [limiter.check([limit]).allowed for limit in [fresh(burst=1)] * 2] == [True, False]
    assert not limiter.shared
    limiter.close()


def test_decisions_are_counted_by_policy_and_outcome_and_never_by_tenant(
    patient_limiter: Limiter,
) -> None:
    limit = fresh("counted", burst=1)
    patient_limiter.check([limit])
    patient_limiter.check([limit])
    text = metrics.render().decode()
    for outcome in ("allowed", "refused"):
        labels = f'counted="shared",outcome="{outcome}",policy="counted"'
        assert f"rillbase_limit_decisions_total{{{labels}}} 1.0" in text
    assert limit.key not in text
