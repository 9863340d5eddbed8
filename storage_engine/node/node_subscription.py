"""What live subscriptions that follow the storage node have in common."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from connections import frames
from connections.subscriptions import Subscriber, SubscriptionOutlet
from foundation.errors import ApiError
from foundation.json_types import JsonObject
from storage_engine.node.client import CALL_DEADLINE_S
from storage_engine.node.refusals import unavailable

#: The most that may be in flight to a client.
OUTBOX_FRAMES = 1_000
OUTBOX_BYTES = 8 * 1024 * 1024


@dataclass(slots=True, eq=False)
class NodeSubscription(ABC):
    """One subscription of a client that follows the storage node."""

    outlet: SubscriptionOutlet
    subscriber: Subscriber
    state: str = field(default="starting", kw_only=True)
    #: Events that were sent, including those before it was resumed.
    events: int = field(default=0, kw_only=True)
    #: Frames and bytes that have not been sent to the client.
    in_flight: list[int] = field(default_factory=lambda: [0, 0], kw_only=True)
    over: bool = field(default=False, kw_only=True)
    #: Pending until the node has accepted the subscription.
    acceptance: asyncio.Future[None] | None = field(default=None, kw_only=True)

    @abstractmethod
    def authorize(self) -> None:
        """Raise unless the subscriber may read the source."""

    @abstractmethod
    def describe(self) -> JsonObject:
        """Return the source and the query."""

    @abstractmethod
    def stop_following(self) -> None:
        """Receive nothing more from the node."""

    async def judge(self, subscriber: Subscriber) -> None:
        """Continue with the caller's current permissions."""
        self.subscriber = subscriber
        try:
            self.authorize()
        except ApiError as error:
            self.end(error)

    def close(self) -> None:
        """Send nothing more."""
        self.over = True
        self.stop_following()

    def drained(self, frames: int, size_bytes: int) -> None:
        """Record how much has been sent to the client."""
        self.in_flight[0] -= frames
        self.in_flight[1] -= size_bytes

    def figures(self) -> JsonObject:
        """Return its state and its counts."""
        return {
            "state": self.state,
            "events": self.events,
            "waiting": max(0, self.in_flight[0]),
            "lag_ms": None,
        }

    def stale(self) -> None:
        """Notify the client that changes may be late."""
        self.state = "stale"
        self.send(frames.status(self.id, "stale", "the storage node is unavailable"))

    @property
    def id(self) -> str:
        """The name that the client chose."""
        return self.subscriber.name

    def expect_acceptance(self) -> asyncio.Future[None]:
        """Return what `accepted` resolves, and an end before it fails."""
        self.acceptance = asyncio.get_running_loop().create_future()
        return self.acceptance

    async def wait_for_acceptance(self, acceptance: asyncio.Future[None]) -> None:
        """Wait until the node has accepted the subscription, or raise why it does not."""
        try:
            async with asyncio.timeout(CALL_DEADLINE_S):
                await acceptance
        except BaseException as error:
            self.close()
            if isinstance(error, TimeoutError):
                raise unavailable() from None
            raise

    def accepted(self) -> None:
        if self.acceptance is not None and not self.acceptance.done():
            self.acceptance.set_result(None)

    def has_room(self, *, half: bool = False) -> bool:
        """Return whether more may be sent; `half`: whether half of the outbox is free."""
        share = 2 if half else 1
        waiting, size_bytes = self.in_flight
        return waiting < OUTBOX_FRAMES // share and size_bytes < OUTBOX_BYTES // share

    def send(self, frame: bytes) -> None:
        self.in_flight[0] += 1
        self.in_flight[1] += len(frame)
        self.outlet.send(frame)

    def end(self, error: ApiError | None) -> None:
        """End, and send the client the error; None: the subscription has expired."""
        if self.over:
            return
        if self.acceptance is not None and not self.acceptance.done() and error is not None:
            self.acceptance.set_exception(error)
            return
        self.close()
        self.outlet.send(frames.end(self.id, error))
        self.outlet.ended()
