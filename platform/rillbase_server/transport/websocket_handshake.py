"""The handshake of a WebSocket: what the application sees of it, and the compression offered."""

from __future__ import annotations

import asyncio
import email.utils
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from uvicorn.config import Config
from uvicorn.protocols.utils import get_local_addr, get_remote_addr, is_ssl
from websockets.datastructures import Headers
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.http11 import Request, Response

from foundation.asgi import CONNECTION, SEND_AT_ONCE, Message, Scope, SendAtOnce
from rillbase_server.transport.connection_table import ConnectionEntry

_CREDENTIALS = frozenset({"authorization", "rillbase-key"})
#: Headers of the handshake that are not passed to the application.
_HANDSHAKE_HEADERS = frozenset({
    "connection", "upgrade",
    "sec-websocket-extensions", "sec-websocket-key", "sec-websocket-version",
})  # fmt: skip
COMPRESSION = [
    ServerPerMessageDeflateFactory(
        server_max_window_bits=12, client_max_window_bits=12, compress_settings={"memLevel": 5}
    )
]


def has_credentials(request: Request) -> bool:
    """Return whether a handshake carries credentials, valid or not."""
    return any(name.lower() in _CREDENTIALS for name in request.headers)


def scope_of(
    request: Request,
    transport: asyncio.Transport,
    config: Config,
    app_state: dict[str, Any],
    entry: ConnectionEntry,
    send_at_once: SendAtOnce,
) -> Scope:
    """Return the ASGI scope of a handshake."""
    raw_path, _, query = request.path.partition("?")
    root = config.root_path
    offered = request.headers.get_all("Sec-WebSocket-Protocol")
    return {
        "type": "websocket",
        "asgi": {"version": config.asgi_version, "spec_version": "2.4"},
        "http_version": "1.1",
        "scheme": "wss" if is_ssl(transport) else "ws",
        "server": get_local_addr(transport),
        "client": get_remote_addr(transport),
        "root_path": root,
        "path": root + unquote(raw_path),
        "raw_path": (root + raw_path).encode("latin-1"),
        "query_string": query.encode("latin-1"),
        "headers": [
            (name.lower().encode("latin-1"), value.encode("latin-1"))
            for name, value in request.headers.raw_items()
            if name.lower() not in _HANDSHAKE_HEADERS
        ],
        "subprotocols": [name.strip() for line in offered for name in line.split(",")],
        "state": app_state.copy(),
        "extensions": {
            "websocket.http.response": {},
            CONNECTION: entry,
            SEND_AT_ONCE: send_at_once,
        },
    }


def accept(response: Response, defaults: list[tuple[bytes, bytes]], message: Message) -> None:
    """Complete the response to a handshake that the application accepts."""
    headers = response.headers
    del headers["Date"]
    for name, value in (*defaults, *message.get("headers", ())):
        headers[name.decode("latin-1").lower()] = value.decode("latin-1")
    if subprotocol := message.get("subprotocol"):
        headers["Sec-WebSocket-Protocol"] = subprotocol


class RejectionResponse:
    """The HTTP response with which an application rejects a handshake, as its parts arrive."""

    __slots__ = ("_body", "_pairs", "_status")

    def __init__(self, start: Message) -> None:
        self._status: int = start["status"]
        self._pairs = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in start["headers"]]
        self._body = b""

    def add(self, message: Message) -> Response | None:
        """Add a part of the body; return the response once it is complete."""
        self._body += message.get("body", b"")
        if message.get("more_body", False):
            return None
        headers = Headers(self._pairs)
        headers.setdefault("Date", email.utils.formatdate(usegmt=True))
        headers.setdefault("Connection", "close")
        headers.setdefault("Content-Length", str(len(self._body)))
        headers.setdefault("Content-Type", "text/plain; charset=utf-8")
        return Response(self._status, HTTPStatus(self._status).phrase, headers, self._body)
