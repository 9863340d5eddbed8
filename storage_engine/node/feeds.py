"""Follows subscriptions: the matching publications, ordered by position, without a gap. A tenant
that follows anything in this process has one connection for it. After a failure, the connection is
reopened and every subscription resumes after the position of its followers; the node sends what was
missed, then new publications. What a follower has already received is dropped here, since several
followers of one subscription may be at different positions. A follower that cannot accept more is
skipped and catches up by position later: what waits for it is kept in the node and not here.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Protocol
from uuid import UUID

from storage_engine.node.publication import Publication
from storage_engine.node.tenant_feed import LoopFeeds, TenantFeed
from storage_engine.node.wire import CommandRejected, Reply, Wire

PUBLICATION, END = b"rb.publication", b"rb.end"
#: Why a subscription has ended, for followers that start after its end.
GONE = "gone"


class FeedListener(Protocol):
    """Receives the publications of one subscription."""

    def receive(self, publication: Publication) -> bool:
        """Accept the next publication. False: not now; `FeedFollower.resume` requests it again."""

    def live(self) -> None:
        """Called when all future publications will be received."""

    def stale(self) -> None:
        """Called when the node is unavailable. `live` follows, after the missed publications."""

    def ended(self, reason: str) -> None:
        """Called at the end with its reason: `expired`, `unsubscribed`, `topic dropped`, `gone`."""


class FeedFollower:
    """One follower of one subscription."""

    def __init__(
        self, feed: PublicationFeed, name: str, position: int, follower: FeedListener
    ) -> None:
        self.name = name
        self.position = position
        self.follower = follower
        #: Skipped until the node has restarted at its position.
        self.waits = True
        #: Could not accept more, and has not asked to resume.
        self.lags = False
        self._feed = feed

    def resume(self) -> None:
        """Request what follows the last accepted publication."""
        self._feed.resume(self)

    def close(self) -> None:
        """Receive nothing more."""
        self._feed.leave(self)


class PublicationFeed(TenantFeed):
    """What one tenant follows in this process."""

    def __init__(self, tenant_id: UUID) -> None:
        self._following: defaultdict[str, list[FeedFollower]] = defaultdict(list)
        super().__init__(tenant_id)

    @property
    def is_idle(self) -> bool:
        return not self._following

    def follow(self, name: str, position: int, follower: FeedListener) -> FeedFollower:
        """Start after a position."""
        following = FeedFollower(self, name, position, follower)
        self._following[name].append(following)
        if self._wire is not None:
            self.resume(following)
        return following

    def leave(self, following: FeedFollower) -> None:
        others = self._following.get(following.name, [])
        if following in others:
            others.remove(following)
        if not others and self._following.pop(following.name, None) is not None:
            self._send("RB.SUB.PAUSE", following.name)

    def resume(self, following: FeedFollower) -> None:
        """Restart at the lowest position that a follower needs."""
        following.waits, following.lags = True, False
        wire = self._wire
        others = self._following.get(following.name, [])
        if wire is None or following not in others:
            return
        position = min(f.position for f in others if not f.lags)
        call = wire.call("RB.SUB.RESUME", following.name, position)
        call.add_done_callback(lambda reply: self._on_resumed(following, reply))

    def _on_resumed(self, following: FeedFollower, reply: asyncio.Future[Reply]) -> None:
        failed = None if reply.cancelled() else reply.exception()
        if isinstance(failed, CommandRejected):
            self._end(following.name, GONE)
        elif failed is None and following in self._following.get(following.name, []):
            following.waits = False
            following.follower.live()

    def _connected(self, wire: Wire) -> None:
        for following in [
            f for followers in self._following.values() for f in followers if not f.lags
        ]:
            self.resume(following)

    def _disconnected(self) -> None:
        for following in [f for followers in self._following.values() for f in followers]:
            if not following.waits:
                following.waits = True
                following.follower.stale()

    def _pushed(self, push: list[Reply]) -> None:
        match push:
            case [kind, bytes(name), dict(publication)] if kind == PUBLICATION:
                self._deliver(name.decode(), Publication.of(publication))
            case [kind, bytes(name), bytes(reason)] if kind == END:
                self._end(name.decode(), reason.decode())

    def _deliver(self, name: str, publication: Publication) -> None:
        for following in list(self._following.get(name, [])):
            if following.waits or publication.position <= following.position:
                continue
            if following.follower.receive(publication):
                following.position = publication.position
            else:
                following.waits = following.lags = True
        if all(following.lags for following in self._following.get(name, [])):
            self._send("RB.SUB.PAUSE", name)

    def _end(self, name: str, reason: str) -> None:
        for following in self._following.pop(name, []):
            following.follower.ended(reason)


#: What this process follows, by event loop and tenant.
feeds = LoopFeeds(PublicationFeed)
