"""The Channels consumer under every WebSocket protocol of the product, and that of `/v1/realtime`.

A subclass accepts or rejects the handshake. The object that it returns then reads and writes the
connection, in the task in which the server runs the consumer.
"""

from __future__ import annotations

import contextlib
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, cast

from channels.consumer import AsyncConsumer

from connections.callers import Handshake
from connections.connection import Connection
from connections.connection_registry import ConnectionRegistry
from connections.products import Products
from data_plane.http import problem_answer
from foundation.asgi import Message, Receive, Scope, Send
from foundation.errors import ApiError, NotFound

log = logging.getLogger(__name__)

INTERNAL_ERROR = 1011
PATH = "/v1/realtime"
SUBPROTOCOL = "rillbase.v1"

#: Reads and writes a connection until it ends.
Serve = Callable[[Receive, Send], Awaitable[None]]


class WebSocketConsumer(AsyncConsumer, ABC):
    """One WebSocket."""

    scope: Scope  # type: ignore[assignment]  # a mapping of that form

    @abstractmethod
    async def opened(self) -> Serve | None:
        """Accept the handshake and return what serves the connection, or reject it."""

    async def __call__(  # type: ignore[override]  # the same types under other names
        self, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Serve the WebSocket until it is over.

        The default starts a task for each message, keeps it until the next one arrives, looks up
        its handler by name and closes old database connections in a thread. Here the connection
        receives its messages itself, when it is ready for them.
        """
        self.scope, self.base_send = scope, cast("Any", send)
        await receive()
        serve = await self.opened()
        if serve is None:
            return
        try:
            await serve(receive, send)
        except OSError:
            log.debug("the client disconnected", exc_info=True)
        except Exception:
            log.exception("a connection failed")
            with contextlib.suppress(OSError):  # The client may have disconnected.
                await self.send({"type": "websocket.close", "code": INTERNAL_ERROR})

    async def refuse(self, error: ApiError) -> None:
        """Respond to the handshake with a problem document."""

        async def as_answer(message: Message) -> None:
            await self.send(cast("Any", {**message, "type": f"websocket.{message['type']}"}))

        await problem_answer(error).send(as_answer, {}, with_body=True)


class RealtimeConsumer(WebSocketConsumer):
    """The WebSocket protocol of the data plane."""

    def __init__(self, products: Products, registry: ConnectionRegistry) -> None:
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
