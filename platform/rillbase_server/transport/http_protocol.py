"""HTTP/1.1 for uvicorn, with limits that apply before a request is complete.

It is like uvicorn's httptools protocol, whose request cycle it uses, but counts bytes as they
arrive (`framing.py`), does not parse the next request while one is being handled, ignores trailers,
and has deadlines (`connection_table.py`).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.protocols.utils import get_local_addr, get_remote_addr, is_ssl
from uvicorn.server import ServerState
from websockets.datastructures import Headers
from websockets.http11 import Request

from foundation.asgi import CONNECTION, Scope
from foundation.metrics import CONNECTIONS_CLOSED
from rillbase_server.transport.framing import Framing, HeadTooLarge
from rillbase_server.transport.lingering_close import LingeringClose
from rillbase_server.transport.outgoing_flow import Backlog, OutgoingFlow
from rillbase_server.transport.peer import has_hung_up
from rillbase_server.transport.rates import TransferProgress
from rillbase_server.transport.request_rejections import RequestRejection, response
from rillbase_server.transport.tables import table_of
from rillbase_server.transport.websocket_protocol import WebSocketProtocol

log = logging.getLogger("uvicorn.error")
access_log = logging.getLogger("uvicorn.access")


class HttpProtocol(asyncio.BufferedProtocol):
    """One connection, until it ends or becomes a WebSocket."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        if not config.loaded:
            config.load()
        self._config = config
        self._state = server_state
        self._app_state = app_state
        self._loop = _loop or asyncio.get_running_loop()
        self._table = table_of(server_state)
        self._bounds = self._table.bounds
        self._parser = httptools.HttpRequestParser(self)
        # Tolerate data after a request with `Connection: close`.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._framing = Framing(self._bounds.header_bytes)
        self._is_lost = False

        self._cycle: RequestResponseCycle | None = None
        self._n_headers = 0
        self._message_is_complete = True
        self._has_head = False
        self._is_websocket = False
        self._refusal = RequestRejection.MALFORMED
        #: Bytes received after a request that is being handled.
        self._backlog = b""
        self._received_bytes = 0
        self._body_progress = TransferProgress()
        #: When waiting for the next head began; None: not waiting.
        self._head_since_s: float | None = self._loop.time()
        self._has_begun = False

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        self._outlet = OutgoingFlow(transport, self._bounds)
        self._client = get_remote_addr(transport)
        self._entry = self._table.admit(self, self._client[0] if self._client else None)
        if self._entry is None:
            transport.abort()
            return
        self._server = get_local_addr(transport)
        self._scheme = "https" if is_ssl(transport) else "http"
        self._state.connections.add(self)  # type: ignore[arg-type]  # whatever has `shutdown`

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        self._forget()
        if self._entry is not None:
            self._table.remove(self._entry)
        if exc is None:
            self._transport.close()

    def _forget(self) -> None:
        """End the use of the connection by this protocol. The connection may stay open."""
        self._state.connections.discard(self)
        self._backlog = b""
        if self._cycle is not None:
            self._cycle.disconnected = not self._cycle.response_complete
            self._cycle.message_event.set()
        self._outlet.resume_writing()
        self._detach()

    def _detach(self) -> None:
        """Drop references back to this protocol, since the garbage collector runs rarely."""
        self._cycle = None
        del self._parser

    def eof_received(self) -> None:
        """Close the transport."""

    def pause_writing(self) -> None:
        self._outlet.pause_writing()

    def resume_writing(self) -> None:
        self._outlet.resume_writing()

    def shutdown(self) -> None:
        """Accept no more requests; the current one continues."""
        if self._is_answering and self._cycle is not None:
            self._cycle.keep_alive = False
        else:
            self._transport.close()

    def backlog(self) -> Backlog | None:
        return self._outlet.backlog()

    def abort(self) -> None:
        self._transport.abort()

    # Deadlines

    def check(self, now_s: float) -> None:
        """End the connection if it has missed a deadline. Called about once a second."""
        if self._outlet.is_stuck(now_s):
            self._count("response_too_slow")
            self._transport.abort()
        elif self._transport.is_closing():
            return
        elif self._outlet.read_paused and has_hung_up(self._transport):
            self._transport.abort()
        elif not self._message_is_complete and self._has_head:
            self._check_body(now_s)
        elif not self._is_answering and self._head_since_s is not None:
            self._check_head(now_s, self._head_since_s)

    def _check_head(self, now_s: float, since_s: float) -> None:
        waited_s = now_s - since_s
        if self._framing.head_bytes:
            if waited_s > self._bounds.header_timeout_s:
                self._refuse(RequestRejection.HEAD_TIMEOUT)
        elif not self._has_begun:
            if waited_s > self._bounds.header_timeout_s:
                self._count("no_request")
                self._transport.close()
        elif waited_s > self._config.timeout_keep_alive:
            self._transport.close()

    def _check_body(self, now_s: float) -> None:
        cycle = self._cycle
        if self._outlet.read_paused or (cycle is not None and cycle.waiting_for_100_continue):
            self._body_progress.pause()
            return
        if self._body_progress.is_too_slow(
            now_s,
            self._received_bytes,
            window_s=self._bounds.transfer_window_s,
            min_bytes_per_s=self._bounds.min_bytes_per_s,
        ):
            self._refuse(RequestRejection.BODY_TOO_SLOW)

    # Bytes

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._table.read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._received_bytes += nbytes
        data = bytes(self._table.read_buffer[:nbytes])
        if self._backlog:
            self._backlog += data
        else:
            self._feed(data)

    def _feed(self, data: bytes) -> None:
        """Feed bytes to the parser, up to the end of a request that is still being handled."""
        begin = end = 0
        try:
            if not self._is_answering and self._framing.is_head(data):
                self._parser.feed_data(data)
                return
            while end < len(data) and not self._transport.is_closing():
                begin = end
                if self._message_is_complete and self._is_answering:
                    self._backlog = data[begin:]
                    self._outlet.hold_reading()
                    return
                end = self._framing.piece(data, begin)
                is_all_data = begin == 0 and end == len(data)
                self._parser.feed_data(data if is_all_data else memoryview(data)[begin:end])
        except HeadTooLarge:
            self._refuse(RequestRejection.HEAD_TOO_LARGE)
        except httptools.HttpParserUpgrade as upgrade:
            self._upgrade(data[begin + upgrade.args[0] :])
        except httptools.HttpParserError:
            self._refuse(self._refusal)
        else:
            self._note_partial_head()

    def _note_partial_head(self) -> None:
        """Start the deadline of a partially received head."""
        if self._framing.head_bytes and self._head_since_s is None:
            self._head_since_s = self._loop.time()

    def _refuse(self, refusal: RequestRejection) -> None:
        """Close the connection, with an error response unless another response has started."""
        self._count(refusal.value)
        entry, cycle = self._entry, self._cycle
        if entry is None or self._transport.is_closing():
            return
        if cycle is not None and not cycle.response_complete and cycle.response_started:
            self._transport.abort()
            return
        self._forget()
        self._transport.write(response(refusal.error(), self._state.default_headers))
        LingeringClose(self._transport, entry, self._table, self._state)

    def _count(self, reason: str) -> None:
        CONNECTIONS_CLOSED.labels(reason).inc()

    # Parser callbacks

    def on_message_begin(self) -> None:
        self._url = b""
        self._n_headers = 0
        self._has_begun = True
        self._has_head = self._is_websocket = False
        self._message_is_complete = False
        self._expects_continue = False
        self._headers: list[tuple[bytes, bytes]] = []
        self._content_length: int | None = None
        self._is_chunked = False

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._n_headers += 1
        if self._n_headers > self._bounds.headers:
            self._refusal = RequestRejection.TOO_MANY_HEADERS
            raise HeadTooLarge
        if self._has_head:
            return  # a trailer, which must not be treated as a header
        name = name.lower()
        if name == b"content-length":
            self._content_length = int(value)
        elif name == b"transfer-encoding":
            self._is_chunked = True
        elif name == b"expect" and value.lower() == b"100-continue":
            self._expects_continue = True
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        self._n_headers = 0
        self._has_head = True
        self._head_since_s = None
        if self._is_chunked:
            self._framing.body_follows(None)
        elif self._content_length:
            self._framing.body_follows(self._content_length)
        upgrades = self._parser.should_upgrade()
        self._is_websocket = (
            upgrades
            and self._config.ws_protocol_class is not None
            and _upgrade_of(self._headers) == b"websocket"
        )
        if self._is_websocket:
            return
        scope = self._scope()
        cycle = self._cycle = RequestResponseCycle(
            scope=scope,  # type: ignore[arg-type]  # a mapping of that form
            transport=self._transport,
            flow=self._outlet,
            logger=log,
            access_logger=access_log,
            access_log=False,
            default_headers=self._state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self._expects_continue,
            keep_alive=scope["http_version"] != "1.0"
            and self._parser.should_keep_alive()
            and not upgrades,
            on_response=self._on_response,
        )
        task = self._loop.create_task(cycle.run_asgi(self._config.loaded_app))
        task.add_done_callback(self._state.tasks.discard)
        self._state.tasks.add(task)

    def on_body(self, body: bytes) -> None:
        cycle = self._cycle
        if cycle is None or cycle.response_complete:
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self._outlet.pause_reading()
        cycle.message_event.set()

    def on_chunk_header(self) -> None:
        self._framing.chunk_begins()

    def on_message_complete(self) -> None:
        self._framing.message_ends()
        self._message_is_complete = True
        self._body_progress.pause()
        if self._is_websocket or self._cycle is None:
            return
        if self._cycle.response_complete:
            self._head_since_s = self._loop.time()
        else:
            self._cycle.more_body = False
            self._cycle.message_event.set()

    # Requests

    @property
    def _is_answering(self) -> bool:
        return self._cycle is not None and not self._cycle.response_complete

    def _scope(self) -> Scope:
        url = httptools.parse_url(self._url)
        if url.host:
            # The host of an absolute URL overrides the header (RFC 9112, 3.2.2).
            self._headers = [pair for pair in self._headers if pair[0] != b"host"]
            port = b":%d" % url.port if url.port else b""
            self._headers.append((b"host", url.host + port))
        path = url.path.decode("ascii")
        root = self._config.root_path
        return {
            "type": "http",
            "asgi": {"version": self._config.asgi_version, "spec_version": "2.3"},
            "http_version": self._parser.get_http_version(),
            "server": self._server,
            "client": self._client,
            "scheme": self._scheme,
            "method": self._parser.get_method().decode("ascii"),
            "root_path": root,
            "path": root + (unquote(path) if "%" in path else path),
            "raw_path": root.encode("ascii") + url.path,
            "query_string": url.query or b"",
            "headers": self._headers,
            "state": self._app_state.copy(),
            "extensions": {CONNECTION: self._entry},
        }

    def _on_response(self) -> None:
        """Continue with the data that arrived after the handled request."""
        self._state.total_requests += 1
        if self._transport.is_closing():
            return
        self._head_since_s = self._loop.time()
        self._outlet.release_reading()
        if self._backlog:
            backlog, self._backlog = self._backlog, b""
            self._feed(backlog)

    def _upgrade(self, behind: bytes) -> None:
        """Switch to WebSocket. Requests to upgrade to other protocols are handled as plain HTTP."""
        entry = self._entry
        if not self._is_websocket or entry is None:
            return
        raw = Headers()
        for name, value in self._headers:
            raw.set_insecure(name.decode("latin-1"), value.decode("latin-1"))
        method = self._parser.get_method().decode("ascii")
        version = f"HTTP/{self._parser.get_http_version()}"
        request = Request(self._url.decode("latin-1"), raw, method, version)
        self._state.connections.discard(self)
        socket = WebSocketProtocol(self._config, self._state, self._app_state, self._loop)
        socket.take_over(self._transport, self._outlet, entry, request, behind)
        self._detach()


def _upgrade_of(headers: list[tuple[bytes, bytes]]) -> bytes | None:
    """Return the protocol of an upgrade request."""
    connection = [
        token.strip()
        for name, value in headers
        if name == b"connection"
        for token in value.lower().split(b",")
    ]
    if b"upgrade" not in connection:
        return None
    return next((value.lower() for name, value in headers if name == b"upgrade"), None)
