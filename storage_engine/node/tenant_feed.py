"""Pushes from one tenant's namespace, over a connection that reconnects after failures.

A tenant that receives pushes here has one connection for them, opened with its own token, so that
the node's isolation of namespaces holds for pushes too. A subclass subscribes again after each
reconnect: the base class only keeps the connection, reports when it is opened and lost, and pings
it, since a silent connection may be dead.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, TypeVar
from uuid import UUID

from foundation.per_loop import PerLoop
from foundation.resp_pipeline import Argument
from storage_engine.node.client import ANSWER_TIMEOUT_S, opened
from storage_engine.node.wire import CommandRejected, NodeUnavailable, Reply, Wire

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.5
#: How often a silent connection is pinged.
PING_S = 5.0


class TenantFeed(ABC):
    """The pushes that one tenant receives in this process."""

    def __init__(self, tenant_id: UUID) -> None:
        self._tenant_id = tenant_id
        #: None while the node is unavailable.
        self._wire: Wire | None = None
        self._over = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    @property
    @abstractmethod
    def is_idle(self) -> bool:
        """Whether there are no receivers, so that the connection may be closed."""

    @abstractmethod
    def _connected(self, wire: Wire) -> None:
        """Subscribe again on a new connection."""

    @abstractmethod
    def _disconnected(self) -> None:
        """Report that the node is unavailable. `_connected` follows."""

    @abstractmethod
    def _pushed(self, push: list[Reply]) -> None:
        """Handle a push of the node."""

    def _send(self, *command: Argument) -> None:
        """Send a command whose reply is ignored."""
        if self._wire is not None and not self._wire.closed:
            self._wire.call(*command).add_done_callback(
                lambda reply: None if reply.cancelled() else reply.exception() and None
            )

    async def aclose(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        """Keep a connection until cancelled."""
        pause_s = FIRST_PAUSE_S
        try:
            while True:
                try:
                    self._connected(await self._connect())
                    pause_s = FIRST_PAUSE_S
                    await self._until_closed()
                except (NodeUnavailable, CommandRejected):
                    pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                self._wire = None
                self._disconnected()
                await asyncio.sleep(pause_s)
        finally:
            if self._wire is not None:
                self._wire.close()

    async def _connect(self) -> Wire:
        self._over = over = asyncio.Event()
        self._wire = wire = await opened(
            self._tenant_id,
            lambda: Wire(
                answer_timeout_s=ANSWER_TIMEOUT_S, on_push=self._pushed, on_close=over.set
            ),
        )
        over.clear()
        if wire.closed:
            over.set()
        return wire

    async def _until_closed(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PING_S):
                    await self._over.wait()
            self._send("PING")


F = TypeVar("F", bound=TenantFeed)


class TenantFeeds(Generic[F]):
    """The feeds of one event loop, by tenant."""

    def __init__(self, create_feed: Callable[[UUID], F]) -> None:
        self._create_feed = create_feed
        self._by_tenant: dict[UUID, F] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def of(self, tenant_id: UUID) -> F:
        """Return the tenant's feed, and close the feeds of tenants without receivers."""
        self._sweep(tenant_id)
        feed = self._by_tenant.get(tenant_id)
        if feed is None:
            feed = self._by_tenant[tenant_id] = self._create_feed(tenant_id)
        return feed

    async def aclose(self) -> None:
        feeds, self._by_tenant = list(self._by_tenant.values()), {}
        await asyncio.gather(*(feed.aclose() for feed in feeds))

    def _sweep(self, except_for: UUID) -> None:
        for tenant_id in [
            t for t, feed in self._by_tenant.items() if feed.is_idle and t != except_for
        ]:
            closing = asyncio.create_task(self._by_tenant.pop(tenant_id).aclose())
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)


class LoopFeeds(Generic[F]):
    """The feeds of each event loop of this process: a connection belongs to one loop."""

    def __init__(self, create_feed: Callable[[UUID], F]) -> None:
        self._feeds = PerLoop(lambda: TenantFeeds(create_feed))

    def of(self, tenant_id: UUID) -> F:
        """Return the tenant's feed in the running loop."""
        return self._feeds.get().of(tenant_id)

    async def close(self) -> None:
        """Close the running loop's feeds."""
        if (feed := self._feeds.pop()) is not None:
            await feed.aclose()
