"""Follows subscriptions: what they meet, in the order of positions, without a gap.

A tenant that follows anything in this process has one connection for it. After a break the
connection is made again and every subscription resumed behind the position that its followers
have; the node sends what was missed, then what comes. What a follower has seen already is dropped
here, since several followers of one subscription may stand at different positions.

A follower that cannot take more is passed over, and catches up by position later: what waits for
it is kept by the node and not here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from typing import Protocol
from uuid import UUID
from weakref import WeakKeyDictionary

from storage_engine.node.client import ANSWER_TIMEOUT_S, opened
from storage_engine.node.publication import Publication
from storage_engine.node.wire import NodeAway, Refused, Reply, Wire

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.02, 0.5
#: How often a silent connection is tried.
PING_S = 5.0
PUBLICATION, END = b"rb.publication", b"rb.end"
#: Why a subscription has ended, for those who come too late to be told.
GONE = "gone"


class Follower(Protocol):
    """Who is told."""

    def take(self, publication: Publication) -> bool:
        """Take the next publication. False: not now; `Following.go_on` asks for it again."""

    def live(self) -> None:
        """Learn that whatever comes from now on is told."""

    def stale(self) -> None:
        """Learn that the node is away. `live` follows, with what was missed before it."""

    def ended(self, reason: str) -> None:
        """Learn that nothing more will come: `expired`, `unsubscribed`, `topic dropped`, `gone`."""


class Following:
    """One follower of one subscription."""

    def __init__(self, feed: Feed, name: str, position: int, follower: Follower) -> None:
        self.name = name
        self.position = position
        self.follower = follower
        #: Passed over until the node has begun again at its position.
        self.waits = True
        #: Could take no more, and has not asked to go on.
        self.lags = False
        self._feed = feed

    def go_on(self) -> None:
        """Ask for what comes behind the last publication that was taken."""
        self._feed.resume(self)

    def close(self) -> None:
        """Be told nothing more."""
        self._feed.leave(self)


class Feed:
    """What one tenant follows in this process."""

    def __init__(self, tenant_id: UUID) -> None:
        self._tenant_id = tenant_id
        self._following: defaultdict[str, list[Following]] = defaultdict(list)
        self._wire: Wire | None = None
        self._over = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    @property
    def is_idle(self) -> bool:
        return not self._following

    def follow(self, name: str, position: int, follower: Follower) -> Following:
        """Begin behind a position."""
        following = Following(self, name, position, follower)
        self._following[name].append(following)
        if self._wire is not None:
            self.resume(following)
        return following

    def leave(self, following: Following) -> None:
        others = self._following.get(following.name, [])
        if following in others:
            others.remove(following)
        if not others and self._following.pop(following.name, None) is not None:
            self._tell("RB.SUB.PAUSE", following.name)

    def resume(self, following: Following) -> None:
        """Have the node begin again, at the least position that a follower needs."""
        following.waits, following.lags = True, False
        wire = self._wire
        others = self._following.get(following.name, [])
        if wire is None or following not in others:
            return
        position = min(f.position for f in others if not f.lags)
        asked = wire.call("RB.SUB.RESUME", following.name, position)
        asked.add_done_callback(lambda reply: self._resumed(following, reply))

    async def aclose(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def _resumed(self, following: Following, reply: asyncio.Future[Reply]) -> None:
        failed = None if reply.cancelled() else reply.exception()
        if isinstance(failed, Refused):
            self._end(following.name, GONE)
        elif failed is None and following in self._following.get(following.name, []):
            following.waits = False
            following.follower.live()

    async def _run(self) -> None:
        """Keep a connection until cancelled."""
        pause_s = FIRST_PAUSE_S
        try:
            while True:
                try:
                    await self._connect()
                    pause_s = FIRST_PAUSE_S
                    await self._until_closed()
                except (NodeAway, Refused):
                    pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                self._lost()
                await asyncio.sleep(pause_s)
        finally:
            if self._wire is not None:
                self._wire.close()

    async def _connect(self) -> None:
        self._over = over = asyncio.Event()
        self._wire = await opened(
            self._tenant_id,
            lambda: Wire(
                answer_timeout_s=ANSWER_TIMEOUT_S, on_push=self._pushed, on_close=over.set
            ),
        )
        over.clear()
        if self._wire.closed:
            over.set()
        for following in [f for each in self._following.values() for f in each if not f.lags]:
            self.resume(following)

    async def _until_closed(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PING_S):
                    await self._over.wait()
            self._tell("PING")

    def _lost(self) -> None:
        self._wire = None
        for following in [f for each in self._following.values() for f in each]:
            if not following.waits:
                following.waits = True
                following.follower.stale()

    def _pushed(self, push: list[Reply]) -> None:
        match push:
            case [kind, bytes(name), dict(publication)] if kind == PUBLICATION:
                self._met(name.decode(), Publication.of(publication))
            case [kind, bytes(name), bytes(reason)] if kind == END:
                self._end(name.decode(), reason.decode())

    def _met(self, name: str, publication: Publication) -> None:
        for following in list(self._following.get(name, [])):
            if following.waits or publication.position <= following.position:
                continue
            if following.follower.take(publication):
                following.position = publication.position
            else:
                following.waits = following.lags = True
        if all(following.lags for following in self._following.get(name, [])):
            self._tell("RB.SUB.PAUSE", name)

    def _end(self, name: str, reason: str) -> None:
        for following in self._following.pop(name, []):
            following.follower.ended(reason)

    def _tell(self, *command: str) -> None:
        """Send a command whose answer matters to nobody."""
        if self._wire is not None and not self._wire.closed:
            self._wire.call(*command).add_done_callback(
                lambda reply: None if reply.cancelled() else reply.exception() and None
            )


class Feeds:
    """The feeds of one event loop, by tenant."""

    def __init__(self) -> None:
        self._by_tenant: dict[UUID, Feed] = {}

    def follow(self, tenant_id: UUID, name: str, position: int, follower: Follower) -> Following:
        """Follow a subscription behind a position."""
        self._sweep(tenant_id)
        feed = self._by_tenant.get(tenant_id)
        if feed is None:
            feed = self._by_tenant[tenant_id] = Feed(tenant_id)
        return feed.follow(name, position, follower)

    async def aclose(self) -> None:
        feeds, self._by_tenant = list(self._by_tenant.values()), {}
        await asyncio.gather(*(feed.aclose() for feed in feeds))

    def _sweep(self, but: UUID) -> None:
        """Close the connections of tenants that follow nothing any more."""
        for tenant_id in [t for t, feed in self._by_tenant.items() if feed.is_idle and t != but]:
            idle = self._by_tenant.pop(tenant_id)
            closing = asyncio.create_task(idle.aclose())
            _closing.add(closing)
            closing.add_done_callback(_closing.discard)


_closing: set[asyncio.Task[None]] = set()
_feeds: WeakKeyDictionary[asyncio.AbstractEventLoop, Feeds] = WeakKeyDictionary()


def feeds() -> Feeds:
    """Return the running loop's feeds."""
    loop = asyncio.get_running_loop()
    found = _feeds.get(loop)
    if found is None:
        found = _feeds[loop] = Feeds()
    return found


async def close() -> None:
    """Close the running loop's feeds."""
    found = _feeds.pop(asyncio.get_running_loop(), None)
    if found is not None:
        await found.aclose()
