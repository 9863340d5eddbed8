"""Accepts connections at `/v1/realtime` and passes everything else on.

An ASGI layer of its own, as the HTTP data plane is (docs/decisions tells why).
"""

from __future__ import annotations

from connections.callers import Handshake
from connections.connection import Connection
from connections.connection_registry import ConnectionRegistry
from connections.products import Products
from data_plane.http import problem_answer
from foundation.asgi import App, Message, Receive, Scope, Send
from foundation.errors import ApiError, NotFound

PATH = "/v1/realtime"
SUBPROTOCOL = "rillbase.v1"


class Realtime:
    """The WebSocket side of the data plane."""

    def __init__(self, app: App, products: Products, registry: ConnectionRegistry) -> None:
        self._app = app
        self._products = products
        self._registry = registry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket" or scope["path"] != PATH:
            await self._app(scope, receive, send)
            return
        scope["state"]["route"] = PATH
        await receive()
        handshake = Handshake.of(scope)
        offered = scope.get("subprotocols", ())
        if offered and SUBPROTOCOL not in offered:
            await refuse(send, NotFound(f"The only subprotocol here is {SUBPROTOCOL}."))
            return
        chosen = SUBPROTOCOL if offered else None
        await send({"type": "websocket.accept", "subprotocol": chosen})
        await Connection(handshake, receive, send, self._products, self._registry).run()


async def refuse(send: Send, error: ApiError) -> None:
    """Answer a handshake without accepting the connection."""

    async def as_answer(message: Message) -> None:
        await send({**message, "type": f"websocket.{message['type']}"})

    await problem_answer(error).send(as_answer, {}, with_body=True)
