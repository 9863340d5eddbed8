"""A subscription of a connection, from the reservation of its name to its last frame."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from typing import Protocol

from connections import frames
from connections.outgoing import Sent
from connections.subscription_kinds import Subscriber, Subscription
from foundation.errors import ApiError


class Way(Protocol):
    """Sends frames to the client."""

    def put(self, frame: bytes, sent: Sent | None = None) -> None:
        """Queue a frame; `sent` is called with its size once it has left."""


class OpenSubscription:
    """The outlet of one subscription. It may end before it has started."""

    def __init__(
        self,
        name: str,
        way: Way,
        request_id: str,
        forget: Callable[[OpenSubscription], None],
    ) -> None:
        self.name = name
        self.id = secrets.token_hex(8)
        self.begun_at = time.time()
        #: Called when it no longer counts against its tenant's quota; None if it does not count.
        self._uncount: Callable[[], None] | None = None
        self._way = way
        self._request_id = request_id
        self._forget = forget
        self._subscription: Subscription | None = None
        self._over = False
        #: Frames and bytes that left before the subscription existed.
        self._early = (0, 0)

    def counted(self, uncount: Callable[[], None]) -> None:
        """Record that it counts against its tenant's quota until it calls `uncount`, once."""
        self._uncount = uncount
        if self._over:
            self.uncount()

    def uncount(self) -> None:
        """Stop counting it against the quota. Idempotent."""
        uncount, self._uncount = self._uncount, None
        if uncount is not None:
            uncount()

    def send(self, frame: bytes) -> None:
        """Send a frame of the subscription."""
        if not self._over:
            self._way.put(frame, self._sent)

    def ended(self) -> None:
        """Release the name: the subscription has sent its last frame."""
        self._over = True
        self.uncount()
        self._forget(self)

    def begun(self, subscription: Subscription) -> None:
        """Attach the subscription that was opened under the name."""
        if self._over:
            subscription.close()
            return
        self._subscription = subscription
        if self._early[0]:
            subscription.drained(*self._early)

    def end(self, error: ApiError | None) -> None:
        """End the subscription and send the client the error; None: the client unsubscribed."""
        if self._over:
            return
        if error is None and self._subscription is not None:
            self._subscription.unsubscribed()
        self.close()
        self._way.put(frames.end(self.name, error, self._request_id))

    def close(self) -> None:
        """End the subscription without notifying the client."""
        self._over = True
        self.uncount()
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    async def judge(self, subscriber: Subscriber) -> None:
        """Continue with the caller's current rights."""
        if self._subscription is not None:
            await self._subscription.judge(subscriber)

    @property
    def subscription(self) -> Subscription | None:
        """The subscription behind the name, if it has started and not ended."""
        return self._subscription

    def _sent(self, size_bytes: int) -> None:
        if self._subscription is not None:
            self._subscription.drained(1, size_bytes)
        elif not self._over:
            self._early = (self._early[0] + 1, self._early[1] + size_bytes)
