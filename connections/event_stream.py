"""A live query as server-sent events: one HTTP response that does not end.

Events are the frames of the WebSocket protocol; an event's name is the frame's type, its id the
resume token. A client that reconnects sends the last id as `Last-Event-ID`, as every EventSource
does. `reset` has an empty id, which makes an EventSource forget the last one: that token belongs to
the state before the reset, and the numbering of events has started again from 1.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections import deque
from collections.abc import AsyncIterator

from connections.callers import ConnectionCaller
from connections.connection_registry import ConnectionRegistry, Verdict
from connections.outgoing import Sent
from connections.subscriptions import OpenSubscription, Subscriber, SubscriptionKind
from foundation.errors import ApiError, CredentialsExpired, TokenExpired
from rillbase_native import Value

NAME = "live"
RETRY_MS = 1_000
#: The last member of a frame that has one; no content of a document can look like this end.
RESUME_TOKEN = re.compile(rb',"resume":"([A-Za-z0-9_=.-]+)"\}\Z')
_TYPE = re.compile(rb'\{"type":"([a-zA-Z]+)"')
_RESET = b"reset"


class EventStream:
    """One live query as an event stream. The registry treats it like a connection."""

    def __init__(
        self,
        caller: ConnectionCaller,
        registry: ConnectionRegistry,
        request_id: str,
        event_id: re.Pattern[bytes] = RESUME_TOKEN,
        *,
        canonical: bool = False,
    ) -> None:
        self.id = secrets.token_hex(8)
        self.caller: ConnectionCaller = caller
        self._registry = registry
        self._waiting: deque[tuple[bytes, Sent | None]] = deque()
        self._wake = asyncio.Event()
        self._over = False
        self._event_id = event_id
        self._subscription = OpenSubscription(NAME, self, request_id, self._finish)
        self._canonical = canonical
        self._subscriber = self._subscriber_of(caller)

    def _subscriber_of(self, caller: ConnectionCaller) -> Subscriber:
        return Subscriber(caller.principal, caller.tenant, self.id, NAME, self._canonical)

    @property
    def is_judged(self) -> bool:
        """Whether its credentials are currently valid."""
        return not self._over

    @property
    def busy(self) -> bool:
        """Whether frames wait, so that no heartbeat is needed."""
        return len(self._waiting) > 0

    @property
    def subscriptions(self) -> list[OpenSubscription]:
        return [self._subscription]

    async def begin(self, kind: SubscriptionKind, message: Value) -> None:
        """Start the query, or raise why it cannot start."""
        await self._registry.admit(self, self.caller)
        try:
            await self._registry.starts.admit(self._subscription, self.caller)
            opened = kind.open(self._subscriber, message, self._subscription)
            self._subscription.begun(await self._registry.starts.metered(self.caller, opened))
        except BaseException:
            self.leave()
            raise

    def put(self, frame: bytes, sent: Sent | None = None) -> None:
        """Send a frame after those that wait."""
        self._waiting.append((frame, sent))
        self._wake.set()

    def notify(self, frame: bytes) -> None:
        """Send a frame that belongs to no subscription."""
        self.put(frame)
        if b'"goodbye"' in frame[:20]:
            self._finish(self._subscription)

    def end(self, name: str, error: ApiError) -> bool:
        """End the query, and with it the response."""
        if name != NAME or self._over:
            return False
        self._subscription.end(error)
        self._finish(self._subscription)
        return True

    async def judge(self, verdict: Verdict) -> None:
        """Continue with the current rights of the credentials."""
        caller, refused = verdict
        if refused is not None:
            expired = isinstance(refused, CredentialsExpired)
            self.end(NAME, TokenExpired() if expired else refused)
        elif caller is not None and self.caller != caller:
            self.caller = caller
            self._subscriber = self._subscriber_of(caller)
            await self._subscription.judge(self._subscriber)

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the response's body until the stream ends. `leave` follows."""
        yield b"retry: %d\n\n" % RETRY_MS
        while True:
            while self._waiting:
                frame, sent = self._waiting.popleft()
                yield as_event(frame, self._event_id)
                if sent is not None:
                    sent(len(frame))
            if self._over:
                return
            self._wake.clear()
            await self._wake.wait()

    def leave(self) -> None:
        """Release everything that the stream holds."""
        self._over = True
        self._subscription.close()
        self._registry.leave(self)

    def _finish(self, _: OpenSubscription) -> None:
        self._over = True
        self._wake.set()


def as_event(frame: bytes, event_id: re.Pattern[bytes] = RESUME_TOKEN) -> bytes:
    """Return a frame as an event. It is JSON on one line, so nothing in it ends the event."""
    kind, resume = _TYPE.match(frame), event_id.search(frame)
    name = kind[1] if kind is not None else b"message"
    token = b"" if name == _RESET else resume[1] if resume is not None else None
    line = b"id: %b\n" % token if token is not None else b""
    return b"event: %b\n%bdata: %b\n\n" % (name, line, frame)
