"""A subscription as its connection holds it, from its name's reservation to its last frame."""

from __future__ import annotations

import time
from collections.abc import Callable

from documents.live import Subscriber, Subscription
from foundation.errors import ApiError
from realtime.socket import frames
from realtime.socket.outgoing import Outgoing


class Held:
    """The outlet of one subscription. It may be ended before it has begun."""

    def __init__(
        self,
        name: str,
        outgoing: Outgoing,
        request_id: str,
        forget: Callable[[Held], None],
    ) -> None:
        self.name = name
        self.begun_at = time.time()
        self._outgoing = outgoing
        self._request_id = request_id
        self._forget = forget
        self._subscription: Subscription | None = None
        self._over = False

    def send(self, frame: bytes) -> None:
        """Pass a frame of the subscription on."""
        if not self._over:
            self._outgoing.put(frame, self._sent)

    def ended(self) -> None:
        """Give the name free: the subscription has said its last word."""
        self._over = True
        self._forget(self)

    def begun(self, subscription: Subscription) -> None:
        """Learn what stands behind the name."""
        if self._over:
            subscription.close()
        else:
            self._subscription = subscription

    def end(self, error: ApiError | None) -> None:
        """End the subscription and tell the client why; None: because it wished so."""
        if self._over:
            return
        self.close()
        self._outgoing.put(frames.end(self.name, error, self._request_id))

    def close(self) -> None:
        """End the subscription without a word."""
        self._over = True
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None

    async def judge(self, subscriber: Subscriber) -> None:
        """Go on as what the caller has become."""
        if self._subscription is not None:
            await self._subscription.judge(subscriber)

    def _sent(self, size_bytes: int) -> None:
        if self._subscription is not None:
            self._subscription.drained(1, size_bytes)
