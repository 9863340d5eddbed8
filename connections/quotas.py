"""Counts a tenant's connections and subscriptions over all server processes, in Valkey. Each
process reports its own numbers for a tenant: when one is added (a call that fails if there would be
too many), soon after some have ended, and every few seconds, so that the counts of a dead process
expire. Counts are absolute and sent over one connection in order, so they cannot drift. While
Valkey is unavailable, each process counts on its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from redis.exceptions import RedisError

from foundation import event_server
from foundation.valkey_functions import ValkeyFunctions, integer, items

log = logging.getLogger(__name__)

LIBRARY = "rillbase_sockets_1"
SOURCE = Path(__file__).with_name("quota.lua")
COUNTS_MS = 15_000
REPORT_INTERVAL_S = 4.0
#: Removals within this time are reported together.
SOON_S = 0.02


class ConnectionUsage(NamedTuple):
    """The numbers of one tenant."""

    connections: int
    subscriptions: int


class Quotas:
    """The counts of this process, as part of those of all processes."""

    def __init__(
        self,
        process: str,
        count: Callable[[UUID], ConnectionUsage],
        tenants: Callable[[], Iterable[UUID]],
    ) -> None:
        self._process = process
        self._count = count
        self._tenants = tenants
        self._decreased: set[UUID] = set()
        self._reporting: asyncio.Task[None] | None = None
        self._keeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._keeping = asyncio.create_task(self._keep_reporting())

    async def stop(self) -> None:
        """Stop counting."""
        tasks = [task for task in (self._reporting, self._keeping) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def with_others(self, tenant: UUID, allowed: ConnectionUsage) -> ConnectionUsage:
        """Return the numbers of a tenant in all processes, including what this process has just
        added.
        """
        own = self._count(tenant)
        try:
            reply = await _functions(tenant).call(
                "take", self._process, own.connections, own.subscriptions, COUNTS_MS, *allowed
            )
            connections, subscriptions = items(reply, 2)
        except RedisError as error:
            log.debug("connections of other servers could not be counted: %s", error)
            return own
        return ConnectionUsage(integer(connections), integer(subscriptions))

    def decreased(self, tenant: UUID) -> None:
        """Called when a tenant's numbers decrease in this process."""
        self._decreased.add(tenant)
        if self._reporting is None or self._reporting.done():
            self._reporting = asyncio.create_task(self._report_soon())

    async def _report_soon(self) -> None:
        while self._decreased:
            await asyncio.sleep(SOON_S)
            decreased, self._decreased = self._decreased, set()
            await self._report(decreased)

    async def _keep_reporting(self) -> None:
        while True:
            await asyncio.sleep(REPORT_INTERVAL_S)
            await self._report(list(self._tenants()))

    async def _report(self, tenants: Iterable[UUID]) -> None:
        try:
            await asyncio.gather(*(self._report_tenant(tenant) for tenant in tenants))
        except RedisError as error:
            log.debug("connections could not be reported: %s", error)

    async def _report_tenant(self, tenant: UUID) -> None:
        await _functions(tenant).call("tell", self._process, *self._count(tenant), COUNTS_MS)


def key_of(tenant: UUID) -> str:
    """Return the key of the reports of all processes on a tenant (`quota.lua`)."""
    return f"{{rillbase}}:live:open:{tenant}"


def _functions(tenant: UUID) -> ValkeyFunctions:
    return ValkeyFunctions(event_server.wire(), LIBRARY, SOURCE, key_of(tenant))
