"""The Channels consumer under every WebSocket protocol of the product, and that of `/v1/realtime`.

A subclass accepts or rejects the handshake. The object that it returns then reads and writes the
connection, in a separate task: messages enter through `websocket_receive`, frames leave through
`send`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, cast

from channels.consumer import AsyncConsumer
from channels.exceptions import StopConsumer

from connections.callers import Handshake
from connections.connection import PATH, Connection
from connections.connection_registry import ConnectionRegistry
from connections.products import Products
from data_plane.http import problem_answer
from foundation.asgi import SEND_AT_ONCE, Message, Receive, Scope, Send, SendAtOnce
from foundation.errors import ApiError, NotFound

log = logging.getLogger(__name__)

INTERNAL_ERROR = 1011
SUBPROTOCOL = "rillbase.v1"

#: Reads and writes a connection until it ends.
Serve = Callable[[Receive, Send], Awaitable[None]]


class MessageHandover:
    """Hands messages over one at a time.

    `give` returns when the next message is requested. Only then does the transport continue to read
    and release the memory of the message.
    """

    __slots__ = ("_giver", "_is_closed", "_message", "_taker")

    def __init__(self) -> None:
        self._message: dict[str, Any] | None = None
        self._giver: asyncio.Future[None] | None = None
        self._taker: asyncio.Future[None] | None = None
        self._is_closed = False

    async def give(self, message: dict[str, Any]) -> None:
        """Offer a message and wait until it is no longer needed."""
        if self._is_closed:
            return
        self._put_message(message)
        self._giver = asyncio.get_running_loop().create_future()
        await self._giver

    def give_last(self, message: dict[str, Any]) -> None:
        """Offer the last message without waiting."""
        self._put_message(message)

    async def take(self) -> Message:
        """Return the next message. The previous one is no longer needed."""
        while (message := self._message) is None:
            _wake(self._giver)
            self._taker = asyncio.get_running_loop().create_future()
            await self._taker
        self._message = None
        # Channels refers to a message until the next one has arrived: a large one would stay in
        # memory for as long as its client sends nothing.
        taken = dict(message)
        message.clear()
        return taken

    def close(self) -> None:
        """Discard messages from now on."""
        self._is_closed = True
        _wake(self._giver)

    def _put_message(self, message: dict[str, Any]) -> None:
        self._message = message
        _wake(self._taker)


def _wake(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)


class WebSocketConsumer(AsyncConsumer, ABC):
    """One WebSocket."""

    scope: Scope  # type: ignore[assignment]  # a mapping of that form

    def __init__(self) -> None:
        self._inbox = MessageHandover()
        self._own: asyncio.Task[Any] | None = None
        self._serving: asyncio.Task[None] | None = None
        #: Whether the close frame has been sent, or the client has disconnected.
        self._is_over = False
        self._server_send_at_once: SendAtOnce | None = None

    @abstractmethod
    async def opened(self) -> Serve | None:
        """Accept the handshake and return what serves the connection, or reject it."""

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Call the handler of a message.

        The default looks handlers up by name and closes old database connections in a thread, for
        each message: six times the cost of everything else done for a message here.
        """
        match message["type"]:
            case "websocket.receive":
                await self.websocket_receive(message)
            case "websocket.connect":
                await self.websocket_connect(message)
            case "websocket.disconnect":
                await self.websocket_disconnect(message)
            case other:
                raise ValueError(f"no handler for {other}")

    async def websocket_connect(self, _: Message) -> None:
        self._take_over_sending()
        serve = await self.opened()
        if serve is None:
            raise StopConsumer
        self._serving = asyncio.create_task(self._run(serve))
        self._own = asyncio.current_task()
        if self._own is not None:
            # The server cancels this task when it must stop immediately.
            self._own.add_done_callback(self._cancel)

    async def websocket_receive(self, message: dict[str, Any]) -> None:
        await self._inbox.give(message)

    async def websocket_disconnect(self, message: dict[str, Any]) -> None:
        self._is_over = True
        self._inbox.give_last(message)
        if self._serving is not None:
            await self._serving
        raise StopConsumer

    def send_at_once(self, frame: bytes) -> bool:
        """Send a text frame as `send` does, unless that has to wait; return whether it was sent."""
        send = self._server_send_at_once
        return send is not None and not self._is_over and send(frame)

    async def refuse(self, error: ApiError) -> None:
        """Respond to the handshake with a problem document."""

        async def as_answer(message: Message) -> None:
            await self.send(cast("Any", {**message, "type": f"websocket.{message['type']}"}))

        await problem_answer(error).send(as_answer, {}, with_body=True)

    def _take_over_sending(self) -> None:
        """Let frames that need not wait leave through the consumer, too."""
        extensions = self.scope.get("extensions", {})
        self._server_send_at_once = extensions.get(SEND_AT_ONCE)
        if self._server_send_at_once is not None:
            self.scope["extensions"] = {**extensions, SEND_AT_ONCE: self.send_at_once}

    async def _run(self, serve: Serve) -> None:
        try:
            await serve(self._inbox.take, self._send)
        except OSError:
            log.debug("the client disconnected", exc_info=True)
        except Exception:
            log.exception("a connection failed")
            with contextlib.suppress(OSError):  # The client may have disconnected.
                await self._send({"type": "websocket.close", "code": INTERNAL_ERROR})
        finally:
            self._inbox.close()
            own, self._own = self._own, None
            if not self._is_over and own is not None:
                # The client takes no close frame. The transport ends with the consumer.
                own.cancel()

    async def _send(self, message: Message) -> None:
        await self.send(cast("Any", message))
        if message["type"] == "websocket.close":
            self._is_over = True

    def _cancel(self, _: asyncio.Task[None]) -> None:
        if self._serving is not None:
            self._serving.cancel()


class RealtimeConsumer(WebSocketConsumer):
    """The WebSocket protocol of the data plane."""

    def __init__(self, products: Products, registry: ConnectionRegistry) -> None:
        super().__init__()
        self._products = products
        self._registry = registry

    async def opened(self) -> Serve | None:
        self.scope["state"]["route"] = PATH
        handshake = Handshake.of(self.scope)
        offered = self.scope.get("subprotocols", ())
        if offered and SUBPROTOCOL not in offered:
            await self.refuse(NotFound(f"The only supported subprotocol is {SUBPROTOCOL}."))
            return None
        chosen = SUBPROTOCOL if offered else None
        await self.send({"type": "websocket.accept", "subprotocol": chosen})
        return lambda receive, send: Connection(
            handshake, receive, send, self._products, self._registry
        ).run()
