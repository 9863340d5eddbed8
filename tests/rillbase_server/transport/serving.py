"""Our protocols under a real uvicorn, with a small application and limits chosen by the test."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import uvicorn

from foundation.asgi import CONNECTION, App, Message, Receive, Scope, Send, text_of
from rillbase_server.transport import tables
from rillbase_server.transport.connection_table import ConnectionTable
from rillbase_server.transport.transport_limits import TransportLimits
from rillbase_server.web_process import HTTP_PROTOCOL, WEBSOCKET_PROTOCOL
from tests.waiting import wait_until


@dataclass
class ServerUnderTest:
    """A running server, and what its application received."""

    port: int
    table: ConnectionTable
    server: uvicorn.Server

    def connect(self, receive_buffer: int | None = None) -> socket.socket:
        listener = socket.socket()
        if receive_buffer is not None:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        listener.settimeout(30)
        listener.connect(("127.0.0.1", self.port))
        return listener

    @property
    def open_connections(self) -> int:
        return len(self.table._all)


@contextmanager
def serving(app: App, bounds: TransportLimits | None = None) -> Iterator[ServerUnderTest]:
    """Serve on a free port until the block ends."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    config = uvicorn.Config(
        app,
        http=HTTP_PROTOCOL,
        ws=WEBSOCKET_PROTOCOL,
        log_config=None,
        access_log=False,
        lifespan="off",
        proxy_headers=False,
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    table = tables._tables[server.server_state] = ConnectionTable(bounds or TransportLimits())
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    wait_until(lambda: server.started, what="the server")
    try:
        yield ServerUnderTest(listener.getsockname()[1], table, server)
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@dataclass
class Echo:
    """Echoes requests, and responds to WebSocket messages with their sizes."""

    requests: list[tuple[str, str, int]] = field(default_factory=list)
    headers: list[list[tuple[bytes, bytes]]] = field(default_factory=list)
    #: What the answer to `/large` has.
    large: bytes = b""
    #: WebSocket messages are read once this is set.
    may_read: threading.Event = field(default_factory=threading.Event)
    #: Credentials are verified once this is set.
    may_verify: threading.Event = field(default_factory=threading.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
            return
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            size += len(message["body"])
            if not message["more_body"]:
                break
        if b"authorization" in dict(scope["headers"]):
            scope["extensions"][CONNECTION].authenticated()
        self.requests.append((scope["method"], scope["path"], size))
        self.headers.append(list(scope["headers"]))
        body = self.large if scope["path"] == "/large" else f"{scope['path']} {size}".encode()
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(b"content-length", str(len(body)).encode())],
            }
        )
        await send({"type": "http.response.body", "body": body})

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        if scope["path"] == "/slow":
            await _until(self.may_verify)
        if b"authorization" in dict(scope["headers"]):
            scope["extensions"][CONNECTION].authenticated()
        while (message := await receive())["type"] != "websocket.disconnect":
            await self._reply(scope, message, send)
            if scope["path"] == "/held":
                await _until(self.may_read)

    async def _reply(self, scope: Scope, message: Message, send: Send) -> None:
        text = text_of(message)
        if text == b"hello":
            scope["extensions"][CONNECTION].authenticated()
        n_received = len(message["bytes"]) if text is None else len(text)
        await send({"type": "websocket.send", "text": str(n_received)})


async def _until(event: threading.Event) -> None:
    while not event.is_set():  # noqa: ASYNC110 -- set by the test's own thread
        await asyncio.sleep(0.01)
