"""Django's ASGI handler, telling the edge which route matched.

Metrics, log lines and spans are labelled by the route's template and never by the raw path; only
Django's resolver knows it, so it is noted in the scope's state as soon as it is found.
"""

from __future__ import annotations

import django
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.http import HttpRequest
from django.urls import ResolverMatch

from rillbase_server.asgi_types import Receive, Scope, Send


class RoutedHandler(ASGIHandler):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer HTTP; refuse a WebSocket, which Django knows only as an error."""
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1000})
        else:
            await super().__call__(scope, receive, send)

    def resolve_request(self, request: HttpRequest) -> ResolverMatch:
        match = super().resolve_request(request)
        if isinstance(request, ASGIRequest):
            request.scope["state"]["route"] = str(match.route)
        return match


def routed_application() -> RoutedHandler:
    """Set Django up and return its handler."""
    django.setup(set_prefix=False)
    return RoutedHandler()
