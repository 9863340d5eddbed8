"""Routes requests and WebSockets to applications."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, cast

from channels.routing import ProtocolTypeRouter, URLRouter
from django.urls import re_path

from connections.consumer import RealtimeConsumer
from foundation.asgi import App, Receive, Scope, Send
from foundation.errors import NotFound
from rillbase_server.edge import refuse_handshake
from rillbase_server.graphql.socket import GraphqlConsumer, GraphqlServer
from rillbase_server.live import LiveConnections


def routes(http: App, live: LiveConnections, graphql: GraphqlServer) -> App:
    """Return the application for requests and WebSockets."""
    realtime = RealtimeConsumer.as_asgi(products=live.products, registry=live.registry)
    websockets = URLRouter(
        [
            _route(r"^v1/realtime\Z", realtime),
            _route(r"^graphql\Z", GraphqlConsumer.as_asgi(server=graphql)),
            _route(r"", _reject),
        ]
    )
    strict: Any = _strict(cast("App", websockets))
    return cast("App", ProtocolTypeRouter({"http": cast("Any", http), "websocket": strict}))


def _route(pattern: str, app: object) -> Any:
    # Django declares a view here, but the router calls an ASGI application.
    return re_path(pattern, cast("Any", app))


def _strict(router: App) -> App:
    """Reject doubled slashes, which the router ignores at the beginning of a path."""

    def strict(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        app = _reject if scope["path"].startswith("//") else router
        return app(scope, receive, send)

    return strict


async def _reject(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await refuse_handshake(send, NotFound(), scope["state"]["request_id"])
