"""The hubs of this process: one for the shared grid of each backend, and one for each tenant with a
dedicated grid, which receives the tenant's writes to PostgreSQL.

A hub starts with its first subscription, so a process without subscribers reads no log. The list of
grids is checked once a second: a hub follows its newest one, and subscriptions change hubs when
their tenant gets or loses a dedicated grid.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeVar
from uuid import UUID

import psycopg
from redis.exceptions import RedisError

from documents.backend import Backend
from foundation.environment import environment
from foundation.errors import Unavailable
from foundation.json_types import JsonObject
from foundation.metrics import LIVE_BYTES, LIVE_RELIEFS, LIVE_TRACE_BYTES
from realtime.grid.layout import ServingGrids, read_served
from realtime.hub.hub_requests import HubRequests
from realtime.hub.next_grid import find_next_grid
from realtime.hub.running_hub import RunningHub

log = logging.getLogger(__name__)

POLL_S = 1.0
#: How long to look for the grid before a subscriber is rejected: on a busy server, a reply may be
#: read too late, and a connection may just have been lost.
RETRY_DEADLINE_S, PAUSE_S = 10.0, 0.2
#: Exceptions of an unavailable event layer or database.
UNAVAILABLE = (RedisError, psycopg.Error, OSError)
MIB = 1024 * 1024
#: The share of the memory for live queries that the hub of native collections may use, and that
#: each tenant's dedicated hub may use.
OWN_PART = 4

T = TypeVar("T")
HubOwner = UUID | Backend
"""A tenant with a grid of its own; a backend: all others."""


class HubProcess:
    """The hubs of this process, found when they are first needed."""

    def __init__(self) -> None:
        self.name = secrets.token_hex(8)
        self._requests = HubRequests()
        #: Moves subscriptions between hubs after the list of grids has been read.
        self.settle: Callable[[], Awaitable[None]] = _nothing
        self._served: ServingGrids | None = None
        self._hubs: dict[HubOwner, asyncio.Task[RunningHub]] = {}
        self._following: asyncio.Task[None] | None = None
        self._check_now = asyncio.Event()
        self._preparing: asyncio.Task[None] | None = None
        LIVE_BYTES.labels("budget").set(environment().rillbase_live_memory_mib * MIB)

    def grids_changed(self, _: JsonObject) -> None:
        """Check the list of grids now: it has changed."""
        self._check_now.set()

    def prepare(self, message: JsonObject) -> None:
        """Start the hub of the shared grid, because clients of a stopping server are about to
        connect.
        """
        if message.get("process") != self.name and (
            self._preparing is None or self._preparing.done()
        ):
            self._preparing = asyncio.create_task(self._prepare())

    async def _prepare(self) -> None:
        try:
            if self._served is None:
                self._served = await _retry_while_unavailable(read_served)
            await asyncio.shield(self._hub(Backend.POSTGRES))
        except (*UNAVAILABLE, LookupError) as error:
            log.info("the hub cannot start yet: %s", error)

    def owner(self, tenant_id: UUID, backend: Backend) -> HubOwner:
        """Return the owner of the hub that serves a tenant's collections in a backend."""
        is_own = self._served is not None and tenant_id in self._served.own
        return tenant_id if is_own and backend == Backend.POSTGRES else backend

    def has_dedicated_hub(self, tenant_id: UUID) -> bool:
        """Return whether a tenant has, or just had, a dedicated hub."""
        return self.owner(tenant_id, Backend.POSTGRES) == tenant_id or tenant_id in self._hubs

    async def running(self, tenant_id: UUID, backend: Backend) -> RunningHub:
        """Return the hub of a tenant's collections in a backend, or raise `Unavailable` while its
        grid cannot be found.
        """
        try:
            if self._served is None:
                self._served = await _retry_while_unavailable(read_served)
            return await asyncio.shield(self._hub(self.owner(tenant_id, backend)))
        except (*UNAVAILABLE, LookupError) as error:
            log.warning("queries cannot be registered: %s", error)
            raise Unavailable(
                "Live queries are not available at the moment. Retry.", headers={"Retry-After": "1"}
            ) from None

    def now(self, owner: HubOwner) -> RunningHub | None:
        """Return a hub, if it runs."""
        task = self._hubs.get(owner)
        if task is None or not task.done() or task.cancelled() or task.exception():
            return None
        return task.result()

    async def stop(self) -> None:
        for task in (self._preparing, self._following):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        for owner in list(self._hubs):
            await self._close(owner)
        self._served = self._following = None

    def _hub(self, owner: HubOwner) -> asyncio.Task[RunningHub]:
        task = self._hubs.get(owner)
        if task is None or (task.done() and task.exception()):
            task = asyncio.create_task(_retry_while_unavailable(partial(self._start, owner)))
            self._hubs[owner] = task
        if self._following is None:
            self._following = asyncio.create_task(self._keep_following(), name="hubs")
        return task

    async def _start(self, owner: HubOwner) -> RunningHub:
        if self._served is None or not (grids := self._served.of(owner)):
            # That of native collections is created with the first of them.
            self._served = await read_served()
            grids = self._served.of(owner)
        if not grids:
            raise LookupError("there is no grid")
        # Queries are held under a name, which is alive or lost as a whole.
        name = self.name if isinstance(owner, Backend) else secrets.token_hex(8)
        part = 1 if owner is Backend.POSTGRES else OWN_PART
        running = RunningHub(
            name,
            grids[-1],
            self._requests.serve,
            memory_bytes=environment().rillbase_live_memory_mib * MIB // part,
            trace_bytes=environment().rillbase_trace_mib * MIB // part,
        )
        await running.start()
        return running

    async def _close(self, owner: HubOwner) -> None:
        running, task = self.now(owner), self._hubs.pop(owner, None)
        if running is not None:
            await running.close()
        elif task is not None:
            task.cancel()

    async def _keep_following(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_S):
                    await self._check_now.wait()
            self._check_now.clear()
            try:
                await self._follow(await read_served())
            except UNAVAILABLE as error:
                log.debug("the current grid cannot be determined: %s", error)
            except Exception:
                log.exception("the hubs could not follow their grids")
            self._measure()

    async def _follow(self, served: ServingGrids) -> None:
        """Move hubs to the newest grids, and subscriptions to the hubs of their tenants."""
        self._served = served
        for owner in list(self._hubs):
            if (running := self.now(owner)) is None:
                continue
            grid = await find_next_grid(served.of(owner), running.grid)
            if grid is not None:
                log.info("following grid epoch %d instead of %d", grid.epoch, running.grid.epoch)
                await running.move(grid)
        await self.settle()
        for owner in [
            tenant
            for tenant in self._hubs
            if not isinstance(tenant, Backend) and tenant not in served.own
        ]:
            log.info("the dedicated grid of tenant %s is gone", owner)
            await self._close(owner)

    def _measure(self) -> None:
        hubs = [running.hub for owner in self._hubs if (running := self.now(owner)) is not None]
        memory = [hub.memory() for hub in hubs]
        LIVE_BYTES.labels("results").set(sum(hub_memory.results for hub_memory in memory))
        LIVE_BYTES.labels("waiting").set(sum(hub_memory.waiting for hub_memory in memory))
        LIVE_BYTES.labels("outboxes").set(sum(hub_memory.outboxes for hub_memory in memory))
        LIVE_TRACE_BYTES.set(sum(hub.trace_bytes() for hub in hubs))
        LIVE_RELIEFS.labels("evicted").set(sum(hub_memory.let_go for hub_memory in memory))
        LIVE_RELIEFS.labels("disconnected").set(sum(hub_memory.cut_off for hub_memory in memory))
        LIVE_RELIEFS.labels("refused").set(sum(hub_memory.refused for hub_memory in memory))


async def _retry_while_unavailable(work: Callable[[], Awaitable[T]]) -> T:
    """Run something that needs event layer and database; retry while they are unavailable."""
    deadline_s = time.monotonic() + RETRY_DEADLINE_S
    while True:
        try:
            return await work()
        except (*UNAVAILABLE, LookupError) as error:
            if time.monotonic() > deadline_s:
                raise
            log.info("the grid is read again: %s", error)
        await asyncio.sleep(PAUSE_S)


async def _nothing() -> None:
    """Do nothing: there are no subscriptions to move."""
