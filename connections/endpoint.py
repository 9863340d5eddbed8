"""Accepts connections at `/v1/realtime`."""

from __future__ import annotations

from connections.callers import Handshake
from connections.connection import Connection
from connections.connection_registry import ConnectionRegistry
from connections.consumer import Serve, WebSocketConsumer
from connections.products import Products
from foundation.errors import NotFound

PATH = "/v1/realtime"
SUBPROTOCOL = "rillbase.v1"


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
