"""The Channels consumer that responds to a request with server-sent events.

`AsyncHttpConsumer` dispatches nothing while its handler runs, so it would notice a disconnect only
after the stream has ended. Here the stream runs in a task, and a disconnect cancels it, also while
the subscription is still being opened. Until the first byte is sent, an error results in a problem
document.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

from channels.exceptions import StopConsumer
from channels.generic.http import AsyncHttpConsumer

from connections.callers import ConnectionCaller
from connections.connection_registry import ConnectionRegistry
from connections.event_stream import RESUME_TOKEN, EventStream
from connections.subscriptions import SubscriptionKind
from data_plane.calls import Call
from data_plane.http import CallResponse, problem_answer
from foundation.api.problems import translate
from foundation.asgi import App, Message, Scope
from foundation.errors import BodyTooLarge
from foundation.request_context import request_id
from rillbase_native import Value
from tenants import error_log

log = logging.getLogger(__name__)

MEDIA_TYPE = "text/event-stream"


class EventStreams:
    """Responds to each request with the events of one subscription."""

    def __init__(self, registry: ConnectionRegistry) -> None:
        self._registry = registry

    def answer(
        self,
        call: Call,
        caller: ConnectionCaller,
        kind: SubscriptionKind,
        message: Value,
        *,
        event_id: re.Pattern[bytes] = RESUME_TOKEN,
        canonical: bool = False,
    ) -> CallResponse:
        """Return the response to a call that subscribes as `message` does."""

        async def begin() -> EventStream:
            stream = EventStream(
                caller, self._registry, request_id.get(), event_id, canonical=canonical
            )
            await stream.begin(kind, message)
            return stream

        def app(headers: Mapping[str, str]) -> App:
            return cast("App", EventStreamConsumer(begin, headers))

        return CallResponse(media_type=MEDIA_TYPE, app=app)


class EventStreamConsumer(AsyncHttpConsumer):
    """One stream of events."""

    scope: Scope  # type: ignore[assignment]  # a mapping of that form

    def __init__(
        self,
        begin: Callable[[], Awaitable[EventStream]],
        headers: Mapping[str, str],
    ) -> None:
        """`begin` opens the stream or raises why it cannot; `headers` are added in both cases."""
        super().__init__()
        self._begin = begin
        self._headers = headers
        self._streaming: asyncio.Task[None] | None = None

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Call the handler of a message. See `WebSocketConsumer.dispatch`."""
        match message["type"]:
            case "http.request":
                await self.http_request(message)
            case "http.disconnect":
                await self.http_disconnect(message)
            case other:
                raise ValueError(f"no handler for {other}")

    async def http_request(self, message: Any) -> None:
        if message.get("body"):
            await self._reject(BodyTooLarge("This call takes no body."))
            raise StopConsumer
        if message.get("more_body") or self._streaming is not None:
            return
        self._streaming = asyncio.create_task(self._stream())
        if (own := asyncio.current_task()) is not None:
            # A server that must stop at once cancels this task.
            own.add_done_callback(self._cancel)

    async def http_disconnect(self, _: Any) -> None:
        if self._streaming is not None:
            self._streaming.cancel()
            await asyncio.gather(self._streaming, return_exceptions=True)
        raise StopConsumer

    async def _stream(self) -> None:
        try:
            stream = await self._begin()
        except Exception as error:  # noqa: BLE001 -- every error becomes a problem document
            await self._reject(error)
            return
        try:
            await self._start()
            if self._has_body:
                async for part in stream.parts():
                    await self.send_body(part, more_body=True)
        except OSError:
            log.debug("the client disconnected", exc_info=True)
        except Exception:
            # The client reconnects, as it does when any stream ends.
            log.exception("an event stream failed")
        finally:
            stream.leave()
        await self.send_body(b"")

    @property
    def _has_body(self) -> bool:
        return bool(self.scope["method"] != "HEAD")

    async def _start(self) -> None:
        self.scope["state"]["is_stream"] = True
        headers = {**self._headers, "Cache-Control": "no-store", "Content-Type": MEDIA_TYPE}
        raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
        await self.send_headers(headers=raw)

    async def _reject(self, raised: Exception) -> None:
        state = self.scope["state"]
        place = f"GET {state.get('route', '')}"
        error = error_log.note_refusal(translate(raised), place, state.get("parameters"))
        await problem_answer(error).send(self._send, self._headers, with_body=self._has_body)

    async def _send(self, message: Message) -> None:
        await self.send(cast("Any", message))

    def _cancel(self, _: asyncio.Task[None]) -> None:
        if self._streaming is not None:
            self._streaming.cancel()
