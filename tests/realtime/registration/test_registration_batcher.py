"""Queries are registered in turn, and those of one tenant do not delay those of another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID, uuid4

import pytest

from documents.outbox.entries import TransactionSnapshot
from foundation.errors import ResultTooLarge
from realtime.events.layer import GridLayer
from realtime.grid.layout import GridEpoch
from realtime.registration.registration import (
    AT_ONCE,
    CollectionReference,
    NotWatched,
    QueryRegistrar,
    RegistrationBatcher,
    RegistrationResult,
)
from rillbase_native import Filter, LiveQuery, Sort, Value
from tests.waiting import until

GRID = GridEpoch(1, 1, 2)
DONE = RegistrationResult(1, "1-0", "0-0", TransactionSnapshot(1, 1, ()), [], 0)


def query_of(tenant_id: UUID, number: int) -> LiveQuery:
    query_filter = Filter.parse(Value.parse(b'{"n":%d}' % number))
    return LiveQuery(
        tenant_id.bytes,
        tenant_id.bytes,
        query_filter,
        Sort.parse(None, query_filter),
        None,
        offset=0,
        limit=None,
        rules_version=0,
        slack=0,
    )


def registering(
    read: Callable[[Sequence[LiveQuery], CollectionReference], Awaitable[None]],
    hubs: list[str] | None = None,
) -> QueryRegistrar:
    """Return what registers queries after `read` has returned. Notes for which hubs."""

    async def register_all(
        layer: GridLayer,
        grid: GridEpoch,
        hub: str,
        queries: Sequence[LiveQuery],
        source: CollectionReference,
        *,
        renewal: bool,
    ) -> list[RegistrationResult]:
        if hubs is not None:
            hubs.append(hub)
        await read(queries, source)
        return [DONE for _ in queries]

    return register_all


async def test_a_tenant_whose_collection_takes_long_to_read_delays_no_other(
    grid: GridLayer,
) -> None:
    slow, quick = CollectionReference(uuid4(), "large"), CollectionReference(uuid4(), "small")
    reads_on, under_way = asyncio.Event(), 0

    async def read(queries: Sequence[LiveQuery], source: CollectionReference) -> None:
        nonlocal under_way
        if source == slow:
            under_way += 1
            await reads_on.wait()

    together = RegistrationBatcher(2, registering(read))

    async def register(source: CollectionReference, number: int) -> RegistrationResult:
        query = query_of(source.tenant_id, number)
        return await together.register(grid, GRID, "hub", query, source, lambda: True)

    many = [asyncio.create_task(register(slow, n)) for n in range(2 * AT_ONCE)]
    await until(lambda: under_way > 0, "the long reading to begin")
    assert await register(quick, 0) is DONE
    assert under_way == 1
    reads_on.set()
    assert await asyncio.gather(*many) == [DONE] * len(many)


async def test_a_query_without_subscribers_is_not_registered(grid: GridLayer) -> None:
    source, goes_on, registered = (
        CollectionReference(uuid4(), "large"),
        asyncio.Event(),
        list[LiveQuery](),
    )

    async def read(queries: Sequence[LiveQuery], _: CollectionReference) -> None:
        registered.extend(queries)
        await goes_on.wait()

    together, is_watched = RegistrationBatcher(2, registering(read)), True
    queries = [query_of(source.tenant_id, number) for number in range(2)]
    first = asyncio.create_task(
        together.register(grid, GRID, "hub", queries[0], source, lambda: True)
    )
    await until(lambda: bool(registered), "the first registration to begin")
    second = asyncio.create_task(
        together.register(grid, GRID, "hub", queries[1], source, lambda: is_watched)
    )
    await asyncio.sleep(0)
    is_watched = False
    goes_on.set()
    assert await first is DONE
    with pytest.raises(NotWatched):
        await second
    assert registered == queries[:1]


async def test_a_shutdown_between_single_retries_resolves_every_registration(
    grid: GridLayer,
) -> None:
    source, retried = CollectionReference(uuid4(), "large"), asyncio.Event()

    async def read(queries: Sequence[LiveQuery], _: CollectionReference) -> None:
        if len(queries) > 1:
            raise ResultTooLarge
        retried.set()
        await asyncio.Event().wait()

    together = RegistrationBatcher(2, registering(read))
    registrations = [
        asyncio.create_task(
            together.register(
                grid, GRID, "hub", query_of(source.tenant_id, n), source, lambda: True
            )
        )
        for n in range(3)
    ]
    await retried.wait()
    for pump in together._tasks:
        pump.cancel()
    async with asyncio.timeout(5):
        outcomes = await asyncio.gather(*registrations, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError] * 3


async def test_a_query_whose_subscribers_cannot_be_looked_up_fails_alone(grid: GridLayer) -> None:
    source = CollectionReference(uuid4(), "large")

    async def read(queries: Sequence[LiveQuery], _: CollectionReference) -> None:
        pass

    def lookup_fails() -> bool:
        raise LookupError

    together = RegistrationBatcher(2, registering(read))
    async with asyncio.timeout(5):
        outcomes = await asyncio.gather(
            *(
                together.register(
                    grid, GRID, "hub", query_of(source.tenant_id, number), source, is_watched
                )
                for number, is_watched in enumerate((lambda: True, lookup_fails, lambda: True))
            ),
            return_exceptions=True,
        )
    assert outcomes[0] is outcomes[2] is DONE
    assert isinstance(outcomes[1], LookupError)


async def test_queries_of_two_hubs_are_registered_for_their_own_hub(grid: GridLayer) -> None:
    source, hubs = CollectionReference(uuid4(), "large"), list[str]()

    async def read(queries: Sequence[LiveQuery], _: CollectionReference) -> None:
        assert len(queries) == 1

    together, query = RegistrationBatcher(2, registering(read, hubs)), query_of(source.tenant_id, 0)
    await asyncio.gather(
        *(
            together.register(grid, GRID, hub, query, source, lambda: True)
            for hub in ("shared", "dedicated")
        )
    )
    assert sorted(hubs) == ["dedicated", "shared"]
