"""Gathers the writes of several callers into groups.

While a group of a tenant is being written, arriving single writes wait and form the next group: an
idle process adds no delay, and in a busy one several callers share one transaction, one flush of
the log and its round trips. Writes of several operations are separate transactions.

Each tenant has its own lane with few groups at once, so one tenant's writes never block another's;
connections are shared by taking turns. Bulk writes are throttled while several tenants are active:
PostgreSQL and Valkey spend far more on them than this process, and serve every tenant.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import cast
from uuid import UUID

from documents.store import facts
from documents.store.attempt import WriteResponse
from documents.store.facts import CollectionFacts, ConcurrentDefinitionChange
from documents.store.former_backend import recorded_before_move
from documents.store.group import run_alone, run_group
from documents.store.node.writes import write_to_node
from documents.store.write import WriteCall, WriteResult
from foundation import bulk_budget
from foundation.errors import ApiError, Unavailable
from foundation.per_loop import PerLoop
from foundation.turns import TurnScheduler

GROUPS_AT_ONCE = 2
MAX_GROUP = 128
MAX_GROUP_BYTES = 2 * 1024 * 1024
MAX_WAITING = 5_000

#: From either size on, writes of several operations are bulk work.
BULK_OPERATIONS, BULK_BYTES = 100, 256 * 1024
BULK_AT_ONCE = 4
#: While several tenants are active, a pause of this multiple of its time follows a bulk write.
BULK_PAUSE = 3.0

Waiting = tuple[WriteCall, "asyncio.Future[WriteResponse]"]


class Lane:
    """One tenant's single writes."""

    def __init__(self, tenant_id: UUID) -> None:
        self._tenant_id = tenant_id
        self._waiting: deque[Waiting] = deque()
        self._running: set[asyncio.Task[None]] = set()

    @property
    def idle(self) -> bool:
        return not self._running and not self._waiting

    async def submit(self, write: WriteCall) -> WriteResponse:
        if len(self._waiting) >= MAX_WAITING:
            raise Unavailable("Too many writes are waiting.", headers={"Retry-After": "1"})
        future: asyncio.Future[WriteResponse] = asyncio.get_running_loop().create_future()
        self._waiting.append((write, future))
        if len(self._running) < GROUPS_AT_ONCE:
            self._start()
        return await future

    def _start(self) -> None:
        self._running.add(asyncio.create_task(self._run()))

    async def _run(self) -> None:
        """Run groups until no write is waiting.

        A caller that is cancelled does not stop its write. The task leaves the set in the step that
        saw no waiting write: a write that arrives a step later starts a group of its own.
        """
        try:
            await self._run_groups()
        finally:
            self._running.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def _run_groups(self) -> None:
        while self._waiting:
            batch = self._take()
            try:
                responses = await run_group(self._tenant_id, [write for write, _ in batch])
            except Exception as error:  # noqa: BLE001 -- each caller gets it
                for _, future in batch:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, future), response in zip(batch, responses, strict=True):
                if not future.done():
                    future.set_result(response)

    def _take(self) -> list[Waiting]:
        batch: list[Waiting] = []
        size = 0
        while self._waiting and len(batch) < MAX_GROUP and size < MAX_GROUP_BYTES:
            write, future = self._waiting.popleft()
            size += write.operations.size
            batch.append((write, future))
        return batch


class WriteBatcher:
    """All lanes of an event loop."""

    def __init__(self) -> None:
        self._lanes: dict[UUID, Lane] = {}
        self._bulk = TurnScheduler(
            BULK_AT_ONCE, BULK_AT_ONCE, bulk_budget.tenants, rests=BULK_PAUSE
        )

    async def submit(self, write: WriteCall) -> WriteResponse:
        collections = await _collections(write)
        recorded = await recorded_before_move(write, collections)
        if recorded is not None:
            return recorded
        run = write_to_node
        if not any(collection.is_native for collection in collections):
            await facts.until_readers_follow(collections)
            run = run_alone
        if _is_bulk(write):
            async with self._bulk.turn(write.tenant_id):
                return await run(write)
        if run is write_to_node:
            # The node gathers writes itself.
            return await write_to_node(write)
        if not write.is_single:
            return await run_alone(write)
        lane = self._lanes.get(write.tenant_id)
        if lane is None:
            lane = self._lanes[write.tenant_id] = Lane(write.tenant_id)
        try:
            return await lane.submit(write)
        finally:
            if lane.idle and self._lanes.get(write.tenant_id) is lane:
                del self._lanes[write.tenant_id]


async def _collections(write: WriteCall) -> list[CollectionFacts]:
    names = set(write.involved_collections().values())
    collections = [await facts.find(write.tenant_id, name) for name in names]
    facts.require_one_backend(collections)
    return collections


def _is_bulk(write: WriteCall) -> bool:
    operations = write.operations
    return not write.is_single and (
        len(operations) >= BULK_OPERATIONS or operations.size >= BULK_BYTES
    )


_writers = PerLoop(WriteBatcher)


async def write(call: WriteCall) -> WriteResult:
    """Write, durably, and return the result; raise the error if the whole write is rejected."""
    writers = _writers.get()
    result = await writers.submit(call)
    if isinstance(result, ConcurrentDefinitionChange):
        # The collection may be in the other backend since a moment ago; nothing was written.
        result = await writers.submit(call)
    if isinstance(result, ApiError):
        raise result
    return result
