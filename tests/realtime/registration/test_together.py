"""Queries wait for their turn to be registered, and one tenant's do not hold up another's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import UUID, uuid4

import pytest

from documents.outbox.entries import Snapshot
from realtime.events.layer import GridLayer
from realtime.grid.layout import GridEpoch
from realtime.registration.register import CollectionReference, RegistrationResult
from realtime.registration.registration_batcher import AT_ONCE, NotWatched, RegistrationBatcher
from rillbase_native import Filter, LiveQuery, Sort, Value
from tests.waiting import until

GRID = GridEpoch(1, 1, 2)
DONE = RegistrationResult(1, "1-0", "0-0", Snapshot(1, 1, ()), [], 0)


def query_of(tenant_id: UUID, number: int) -> LiveQuery:
    wanted = Filter.parse(Value.parse(b'{"n":%d}' % number))
    return LiveQuery(
        tenant_id.bytes,
        tenant_id.bytes,
        wanted,
        Sort.parse(None, wanted),
        None,
        offset=0,
        limit=None,
        rules_version=0,
        slack=0,
    )


async def test_a_tenant_whose_collection_takes_long_to_read_holds_up_nobody_else(
    grid: GridLayer,
) -> None:
    slow, quick = CollectionReference(uuid4(), "large"), CollectionReference(uuid4(), "small")
    reads_on, under_way = asyncio.Event(), 0

    async def read(
        layer: GridLayer,
        grid: GridEpoch,
        hub: str,
        queries: Sequence[LiveQuery],
        source: CollectionReference,
        *,
        renewal: bool,
    ) -> list[RegistrationResult]:
        nonlocal under_way
        if source == slow:
            under_way += 1
            await reads_on.wait()
        return [DONE for _ in queries]

    together = RegistrationBatcher(2, read)

    async def register(source: CollectionReference, number: int) -> RegistrationResult:
        query = query_of(source.tenant_id, number)
        return await together.register(grid, GRID, "hub", query, source, lambda: True)

    many = [asyncio.create_task(register(slow, n)) for n in range(2 * AT_ONCE)]
    await until(lambda: under_way > 0, "the long reading to begin")
    assert await register(quick, 0) is DONE
    assert under_way == 1
    reads_on.set()
    assert await asyncio.gather(*many) == [DONE] * len(many)


async def test_what_nobody_watches_any_more_is_not_registered(grid: GridLayer) -> None:
    source, goes_on, registered = (
        CollectionReference(uuid4(), "large"),
        asyncio.Event(),
        list[LiveQuery](),
    )

    async def read(
        layer: GridLayer,
        grid: GridEpoch,
        hub: str,
        queries: Sequence[LiveQuery],
        source: CollectionReference,
        *,
        renewal: bool,
    ) -> list[RegistrationResult]:
        registered.extend(queries)
        await goes_on.wait()
        return [DONE for _ in queries]

    together, is_watched = RegistrationBatcher(2, read), True
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
