"""Subscriptions that start at the same time are admitted together, and each gets its own answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import cast
from uuid import UUID, uuid4

from connections.callers import ConnectionCaller
from connections.subscriptions import MAX_BATCH, OpenSubscription, PendingStart, Starts
from foundation.bulk_budget import BulkBudget
from foundation.contention import Contention
from foundation.errors import TooManySubscriptions
from tests.waiting import until


@dataclass
class Tenant:
    id: UUID = field(default_factory=uuid4)


@dataclass
class Principal:
    credential_id: UUID = field(default_factory=uuid4)


@dataclass
class Caller:
    """The fields of a caller that `Starts` reads."""

    tenant: Tenant = field(default_factory=Tenant)
    principal: Principal = field(default_factory=Principal)


class Outbox:
    """Discards frames."""

    def put(self, frame: bytes, sent: object = None) -> None:
        raise AssertionError("nothing is sent before a subscription has started")


class Quota:
    """Admits a number of subscriptions, and rejects a batch that would exceed it."""

    def __init__(self, allowed: int) -> None:
        self.allowed = allowed
        self.calls: list[int] = []

    async def take(self, starts: Sequence[PendingStart]) -> None:
        self.calls.append(len(starts))
        await asyncio.sleep(0)
        if len(starts) > self.allowed:
            raise TooManySubscriptions
        self.allowed -= len(starts)


def subscription(name: int) -> OpenSubscription:
    return OpenSubscription(str(name), Outbox(), "request", lambda _: None)


async def start_all(starts: Starts, number: int) -> list[BaseException | None]:
    caller = cast("ConnectionCaller", Caller())
    return await asyncio.gather(
        *(starts.admit(subscription(n), caller, calls=1) for n in range(number)),
        return_exceptions=True,
    )


async def test_starts_that_wait_at_the_same_time_share_a_call() -> None:
    quota = Quota(allowed=1_000)
    assert await start_all(Starts(BulkBudget(Contention()), [quota.take]), 100) == [None] * 100
    assert len(quota.calls) <= 1 + 100 / MAX_BATCH


async def test_of_a_batch_that_is_too_much_as_many_start_as_may() -> None:
    quota = Quota(allowed=37)
    outcomes = await start_all(Starts(BulkBudget(Contention()), [quota.take]), 100)
    assert outcomes[:37] == [None] * 37
    assert all(isinstance(outcome, TooManySubscriptions) for outcome in outcomes[37:])


async def test_a_cancelled_start_blocks_no_other() -> None:
    quota, caller = Quota(allowed=1_000), cast("ConnectionCaller", Caller())
    starts = Starts(BulkBudget(Contention()), [quota.take])
    tasks = [asyncio.create_task(starts.admit(subscription(n), caller, calls=1)) for n in range(40)]
    await asyncio.sleep(0)
    for task in tasks[:20]:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert outcomes[20:] == [None] * 20
    assert sum(quota.calls) == 20


async def test_a_start_cancelled_during_its_rejection_blocks_no_other() -> None:
    requested, caller = asyncio.Event(), cast("ConnectionCaller", Caller())
    answer = asyncio.Event()

    async def refuse_the_first(batch: Sequence[PendingStart]) -> None:
        if not requested.is_set():
            requested.set()
            await answer.wait()
            raise TooManySubscriptions

    starts = Starts(BulkBudget(Contention()), [refuse_the_first])
    abandoned = asyncio.create_task(starts.admit(subscription(0), caller, calls=1))
    await requested.wait()
    abandoned.cancel()
    await asyncio.gather(abandoned, return_exceptions=True)
    answer.set()
    async with asyncio.timeout(5):
        await starts.admit(subscription(1), caller, calls=1)


async def test_a_start_that_is_cancelled_after_it_was_counted_no_longer_counts() -> None:
    counted: list[str] = []

    class Shared(Contention):
        """Another tenant is always active."""

        @property
        def is_contended(self) -> bool:
            return True

    async def count(starts: Sequence[PendingStart]) -> None:
        for start in starts:
            counted.append(start.subscription.name)
            start.subscription.counted(partial(counted.remove, start.subscription.name))
        budget.charge(caller.tenant.id, 1.0)

    budget, caller = BulkBudget(Shared()), cast("ConnectionCaller", Caller())
    starting = asyncio.create_task(Starts(budget, [count]).admit(subscription(1), caller, calls=1))
    await until(lambda: bool(counted), "the start to be counted")
    assert not starting.done()
    starting.cancel()
    await asyncio.wait([starting])
    assert counted == []
