"""A WebSocket on a connection that began as HTTP.

The `websockets` library performs the handshake, the negotiation of compression and the sending, and
applications see the behaviour of uvicorn's protocol. Received data is handled by
`websocket_frames.py` instead, which bounds memory:

- until the client is authenticated a message has at most 8 KiB, as sent and as inflated. A client
  whose handshake carried credentials is not rejected for more but not read until they are verified;
- after a message nothing more is parsed until the application asks for the next one;
- what messages take beyond 8 KiB comes from a memory that all connections share.
"""

from __future__ import annotations

import asyncio
import email.utils
import logging
import secrets
from collections.abc import Generator
from http import HTTPStatus
from math import inf
from typing import Any
from urllib.parse import unquote

from uvicorn.config import Config
from uvicorn.protocols.utils import ClientDisconnected, get_local_addr, get_remote_addr, is_ssl
from uvicorn.server import ServerState
from websockets.datastructures import Headers
from websockets.exceptions import ProtocolError
from websockets.extensions.permessage_deflate import (
    PerMessageDeflate,
    ServerPerMessageDeflateFactory,
)
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol

from foundation.asgi import CONNECTION, Message, Scope
from foundation.metrics import CONNECTIONS_CLOSED
from rillbase_server.transport.connection_table import ConnectionEntry
from rillbase_server.transport.frame_encoding import encode_message
from rillbase_server.transport.lazy_deflate import MIN_BYTES, LazyDeflate
from rillbase_server.transport.lingering_close import LingeringClose
from rillbase_server.transport.outgoing_flow import Backlog, OutgoingFlow
from rillbase_server.transport.rates import TransferProgress
from rillbase_server.transport.request_rejections import with_problem
from rillbase_server.transport.tables import table_of
from rillbase_server.transport.transport_limits import (
    MAX_GREETING_BYTES,
    MAX_MESSAGE_BYTES,
    WORK_FACTOR,
)
from rillbase_server.transport.websocket_frames import (
    STEP_BYTES,
    ControlFrame,
    FrameReader,
    FrameStop,
    ReceivedMessage,
    WebSocketViolation,
)

log = logging.getLogger("uvicorn.error")

CLOSE_TIMEOUT_S = 10.0
#: Maximum steps before other connections get a turn.
STEPS_AT_ONCE = 16
CREDENTIALS = frozenset({"authorization", "rillbase-key"})
#: Bytes per read before authentication, which limits unparsed data.
GREETING_READ_BYTES = 8 * 1024


#: Headers of the handshake that are not passed to the application.
HANDSHAKE_HEADERS = frozenset({
    "connection", "upgrade",
    "sec-websocket-extensions", "sec-websocket-key", "sec-websocket-version",
})  # fmt: skip
COMPRESSION = [
    ServerPerMessageDeflateFactory(
        server_max_window_bits=12, client_max_window_bits=12, compress_settings={"memLevel": 5}
    )
]


def _no_parser() -> Generator[None, None, None]:
    yield


#: Replaces the library's parser, which is not used.
NO_PARSER = _no_parser()


class WebSocketProtocol(asyncio.BufferedProtocol):
    """One connection, from its handshake to its end."""

    # A dictionary of the attributes would take 1.6 kB per connection.
    __slots__ = (
        "__weakref__", "_app_state", "_awaits_authentication", "_behind", "_bounds", "_claim",
        "_close_sent", "_close_timer", "_config", "_conn", "_entry", "_events", "_has_credentials",
        "_has_delivered", "_is_accepted", "_is_lost", "_is_stopped", "_loop", "_outlet",
        "_pending", "_ping", "_progress", "_reader", "_received_bytes", "_refusal", "_response",
        "_sign_due_s", "_state", "_table", "_transport", "_waiter",
    )  # fmt: skip

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self._config = config
        self._state = server_state
        self._app_state = app_state
        self._loop = _loop or asyncio.get_running_loop()
        self._table = table_of(server_state)
        self._bounds = self._table.bounds
        self._conn = ServerProtocol(
            extensions=COMPRESSION if config.ws_per_message_deflate else [], logger=log
        )
        self._events: list[Message] = []
        self._waiter: asyncio.Future[None] | None = None
        self._is_accepted = False
        self._close_sent = False
        self._is_lost = False
        self._close_timer: asyncio.TimerHandle | None = None
        self._refusal: tuple[int, list[tuple[str, str]], bytes] | None = None

        # Receiving
        self._reader: FrameReader | None = None
        self._claim = self._table.memory.begin()
        self._behind = b""
        self._is_stopped = True
        self._has_delivered = False
        #: A complete message that waits for memory.
        self._pending: ReceivedMessage | None = None
        self._awaits_authentication = False
        self._received_bytes = 0
        self._progress = TransferProgress()

        # When the next ping is due, or when the pong for the last one is overdue.
        self._sign_due_s = inf
        self._ping: bytes | None = None

    # The connection

    def take_over(
        self,
        transport: asyncio.Transport,
        outlet: OutgoingFlow,
        entry: ConnectionEntry,
        request: Request,
        behind: bytes,
    ) -> None:
        """Take over a connection after a handshake, with any data that follows it."""
        self._transport = transport
        self._entry = entry
        self._behind = behind
        # Responses to earlier requests may still be waiting for the client.
        self._outlet = outlet
        self._outlet.pause_reading()
        self._state.connections.add(self)  # type: ignore[arg-type]  # whatever has `shutdown`
        entry.owner = self
        self._table.begin_again(entry, self._on_authenticated)
        transport.set_protocol(self)
        self._has_credentials = any(name.lower() in CREDENTIALS for name in request.headers)
        response = self._conn.accept(request)
        self._conn.parser.close()
        self._conn.parser = NO_PARSER
        self._conn.extensions = [
            LazyDeflate(each) if isinstance(each, PerMessageDeflate) else each
            for each in self._conn.extensions
        ]
        if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            self._reject(response)
            return
        self._response = response
        self._put_event({"type": "websocket.connect"})
        task = self._loop.create_task(self._run(self._scope_of(request)))
        task.add_done_callback(self._state.tasks.discard)
        self._state.tasks.add(task)

    def connection_lost(self, exc: Exception | None) -> None:
        code = CloseCode.NO_STATUS_RCVD if self._is_accepted else CloseCode.ABNORMAL_CLOSURE
        self._end(code, "")
        self._table.remove(self._entry)
        if exc is None:
            self._transport.close()

    def _end(self, code: int, reason: str) -> None:
        """End this protocol, and notify the application."""
        if self._is_lost:
            return
        self._is_lost = self._is_stopped = True
        self._stop_pinging()
        if self._close_timer is not None:
            self._close_timer.cancel()
        self._put_disconnect(code, reason)
        self._state.connections.discard(self)
        self._reader, self._behind, self._pending = None, b"", None
        # A suspended parser references the connection, and the garbage collector runs rarely.
        self._conn.parser.close()
        if not self._has_delivered:
            self._release()
        self._outlet.resume_writing()

    def eof_received(self) -> None:
        """Let the transport close itself."""

    def pause_writing(self) -> None:
        self._outlet.pause_writing()

    def resume_writing(self) -> None:
        self._outlet.resume_writing()

    def shutdown(self) -> None:
        """Close the connection because the server is shutting down."""
        if self._is_accepted and not self._close_sent:
            self._close_sent = True
            self._conn.send_close(CloseCode.SERVICE_RESTART)
            self._flush()
            self._put_disconnect(CloseCode.SERVICE_RESTART, "")
        elif not self._is_accepted:
            self._reject(self._conn.reject(HTTPStatus.SERVICE_UNAVAILABLE, ""))
        self._transport.close()

    def backlog(self) -> Backlog | None:
        return self._outlet.backlog()

    def abort(self) -> None:
        self._transport.abort()

    def check(self, now_s: float) -> None:
        """Ping the client; end the connection if it is too slow. Called about once a second."""
        if now_s >= self._sign_due_s:
            self._check_signs(now_s)
        if self._reader is not None:
            self._reader.a_second_passed()
        if self._outlet.is_stuck(now_s):
            self._count("response_too_slow")
            self._transport.abort()
        elif self._reader is None or self._is_stopped or not self._reader.is_within_message:
            self._progress.rest()
        elif self._progress.is_too_slow(
            now_s,
            self._received_bytes,
            window_s=self._bounds.transfer_window_s,
            min_bytes_per_s=self._bounds.min_bytes_per_s,
        ):
            self._count("message_too_slow")
            self._fail(CloseCode.POLICY_VIOLATION, "the message arrives too slowly")

    def _count(self, reason: str) -> None:
        CONNECTIONS_CLOSED.labels(reason).inc()

    def _flush(self) -> None:
        self._transport.write(b"".join(self._conn.data_to_send()))

    # Receiving

    def get_buffer(self, sizehint: int) -> memoryview:
        buffer = self._table.read_buffer
        return buffer if self._entry.is_authenticated else buffer[:GREETING_READ_BYTES]

    def buffer_updated(self, nbytes: int) -> None:
        self._received_bytes += nbytes
        if self._reader is not None:
            self._reader.feed(bytes(self._table.read_buffer[:nbytes]))
            self._advance()

    def _begin_reading(self) -> None:
        extensions = self._conn.extensions
        deflate = extensions[0] if extensions else None
        limit = MAX_MESSAGE_BYTES if self._entry.is_authenticated else MAX_GREETING_BYTES
        self._reader = FrameReader(
            deflate if isinstance(deflate, PerMessageDeflate) else None, limit=limit
        )
        self._reader.granted_bytes = MAX_GREETING_BYTES
        self._reader.feed(self._behind)
        self._behind = b""
        self._resume_parsing()

    def _resume_parsing(self) -> None:
        """Resume parsing after the cause of a stop has ended."""
        if self._pending is not None:
            message, self._pending = self._pending, None
            self._deliver(message)
            return
        self._is_stopped = False
        self._advance()

    def _advance(self) -> None:
        """Parse the data that was read, until something has to be awaited."""
        if self._is_stopped:
            return
        try:
            for _ in range(STEPS_AT_ONCE):
                reader = self._reader
                if reader is None or not self._handle(reader, reader.step()):
                    return
        except WebSocketViolation as violation:
            if violation.code is CloseCode.POLICY_VIOLATION:
                self._count("too_many_small_frames")
            self._fail(violation.code, str(violation))
            return
        self._stop()
        self._loop.call_soon(self._resume_parsing)

    def _handle(
        self, reader: FrameReader, event: FrameStop | ControlFrame | ReceivedMessage
    ) -> bool:
        """Handle the outcome of a step; return whether to continue."""
        match event:
            case FrameStop.PROGRESS:
                return True
            case FrameStop.NEEDS_INPUT:
                self._outlet.resume_reading()
                return False
            case FrameStop.OVER_LIMIT:
                return self._over_limit(reader)
            case FrameStop.NEEDS_MEMORY:
                return self._claim_memory(reader)
            case ControlFrame():
                return self._control(event)
            case ReceivedMessage():
                self._offer(event)
                return False

    def _stop(self) -> None:
        self._is_stopped = True
        self._outlet.pause_reading()

    def _over_limit(self, reader: FrameReader) -> bool:
        if self._entry.is_authenticated and reader.limit < MAX_MESSAGE_BYTES:
            reader.limit = MAX_MESSAGE_BYTES
            return True
        if not self._entry.is_authenticated and self._has_credentials:
            self._awaits_authentication = True
            self._stop()
            return False
        if not self._entry.is_authenticated:
            self._count("greeting_too_large")
        raise WebSocketViolation(CloseCode.MESSAGE_TOO_BIG, f"at most {reader.limit} bytes")

    def _on_authenticated(self) -> None:
        if self._awaits_authentication:
            self._awaits_authentication = False
            self._loop.call_soon_threadsafe(self._resume_parsing)

    def _claim_memory(self, reader: FrameReader) -> bool:
        reader.granted_bytes += STEP_BYTES
        if self._table.memory.extend(self._claim, STEP_BYTES, self._on_memory):
            return True
        self._stop()
        return False

    def _on_memory(self) -> None:
        self._loop.call_soon(self._resume_parsing)

    def _release(self) -> None:
        """Release the memory of the message that was delivered last."""
        self._claim.release()
        self._claim = self._table.memory.begin()
        if self._reader is not None:
            self._reader.granted_bytes = MAX_GREETING_BYTES

    def _offer(self, message: ReceivedMessage) -> None:
        """Deliver a message once there is memory to process it."""
        self._stop()
        n_bytes = len(message.data)
        if n_bytes > MAX_GREETING_BYTES and not self._table.memory.extend(
            self._claim, WORK_FACTOR * n_bytes, self._on_memory
        ):
            self._pending = message
            return
        self._deliver(message)

    def _deliver(self, message: ReceivedMessage) -> None:
        self._has_delivered = True
        kind = "utf8" if message.is_text else "bytes"
        self._put_event({"type": "websocket.receive", kind: message.data, "claim": self._claim})

    def _control(self, frame: ControlFrame) -> bool:
        if frame.opcode is Opcode.PONG:
            self._on_pong(frame.data)
            return True
        try:
            self._conn.recv_frame(Frame(frame.opcode, frame.data))
        except ProtocolError:
            raise WebSocketViolation(CloseCode.PROTOCOL_ERROR, "invalid close frame") from None
        except UnicodeDecodeError:
            raise WebSocketViolation(
                CloseCode.INVALID_DATA, "invalid UTF-8 in a close frame"
            ) from None
        self._conn.events_received()
        if not self._transport.is_closing():
            self._flush()
        if frame.opcode is Opcode.CLOSE:
            self._closed_by_peer()
            return False
        return not self._outlet.write_paused or self._wait_for_peer()

    def _wait_for_peer(self) -> bool:
        """Stop reading pings while the client does not read pongs."""
        self._stop()
        waiter = self._loop.create_task(self._outlet.drain())
        waiter.add_done_callback(lambda _: self._resume_parsing())
        return False

    def _closed_by_peer(self) -> None:
        received = self._conn.close_rcvd
        if received is not None and not self._close_sent:
            self._put_disconnect(received.code, received.reason)
        self._close_sent = True
        self._transport.close()

    def _put_disconnect(self, code: int, reason: str) -> None:
        self._put_event({"type": "websocket.disconnect", "code": code, "reason": reason})

    def _put_event(self, event: Message) -> None:
        self._events.append(event)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, code: CloseCode, reason: str) -> None:
        """Close the connection because of a client error."""
        if self._is_lost or self._transport.is_closing():
            return
        self._conn.fail(code, reason)
        self._close_sent = True
        self._flush()
        self._end(code, reason)
        LingeringClose(self._transport, self._entry, self._table, self._state)

    # Liveness

    def _start_pinging(self) -> None:
        self._ping = None
        self._sign_due_s = self._loop.time() + (self._config.ws_ping_interval or inf)

    def _stop_pinging(self) -> None:
        self._ping, self._sign_due_s = None, inf

    def _check_signs(self, now_s: float) -> None:
        if self._close_sent or self._transport.is_closing():
            self._stop_pinging()
        elif self._ping is None:
            self._ping = secrets.token_bytes(4)
            self._sign_due_s = now_s + (self._config.ws_ping_timeout or inf)
            self._conn.send_ping(self._ping)
            self._flush()
        elif self._is_stopped:
            # The client may have responded: the server itself is not reading.
            self._start_pinging()
        else:
            self._count("ping_timeout")
            self._fail(CloseCode.INTERNAL_ERROR, "keepalive ping timeout")

    def _on_pong(self, data: bytes) -> None:
        if data == self._ping:
            self._start_pinging()

    # The application

    def _scope_of(self, request: Request) -> Scope:
        raw_path, _, query = request.path.partition("?")
        root = self._config.root_path
        offered = request.headers.get_all("Sec-WebSocket-Protocol")
        return {
            "type": "websocket",
            "asgi": {"version": self._config.asgi_version, "spec_version": "2.4"},
            "http_version": "1.1",
            "scheme": "wss" if is_ssl(self._transport) else "ws",
            "server": get_local_addr(self._transport),
            "client": get_remote_addr(self._transport),
            "root_path": root,
            "path": root + unquote(raw_path),
            "raw_path": (root + raw_path).encode("latin-1"),
            "query_string": query.encode("latin-1"),
            "headers": [
                (name.lower().encode("latin-1"), value.encode("latin-1"))
                for name, value in request.headers.raw_items()
                if name.lower() not in HANDSHAKE_HEADERS
            ],
            "subprotocols": [each.strip() for line in offered for each in line.split(",")],
            "state": self._app_state.copy(),
            "extensions": {"websocket.http.response": {}, CONNECTION: self._entry},
        }

    async def _run(self, scope: Scope) -> None:
        try:
            await self._config.loaded_app(scope, self._receive, self._send)
        except ClientDisconnected:
            pass
        except asyncio.CancelledError:
            self._fail_handshake()
        except BaseException:
            log.exception("Exception in ASGI application\n")
            self._fail_handshake()
        else:
            self._fail_handshake()
        finally:
            if self._has_delivered:
                self._has_delivered = False
                self._release()
        if self._close_timer is None and not self._is_lost:
            # A connection that failed is closed once the client has received the reason.
            self._transport.close()

    def _fail_handshake(self) -> None:
        if not self._is_accepted and not self._close_sent and self._refusal is None:
            self._reject(self._conn.reject(HTTPStatus.INTERNAL_SERVER_ERROR, ""))

    def _reject(self, response: Response) -> None:
        """Reject the handshake with an HTTP response."""
        if self._close_sent or self._transport.is_closing():
            return
        self._close_sent = True
        self._conn.send_response(with_problem(response))
        self._flush()
        self._transport.close()

    async def _receive(self) -> Message:
        """Return the next event. Releases the previous message, unless its claim is kept."""
        if self._has_delivered and not self._events:
            self._has_delivered = False
            self._release()
            if self._reader is not None:
                self._resume_parsing()
        while not self._events:
            self._waiter = self._loop.create_future()
            await self._waiter
        return self._events.pop(0)

    async def _send(self, message: Message) -> None:
        if self._outlet.write_paused:
            await self._outlet.drain()
        if self._is_lost:
            raise ClientDisconnected
        kind = message["type"]
        if kind == "websocket.send" and self._is_accepted:
            self._send_message(message)
        elif kind == "websocket.close":
            self._close(message)
        elif kind == "websocket.accept" and not self._is_accepted:
            self._accept(message)
        elif kind.startswith("websocket.http.response."):
            self._answer(message)
        else:
            raise RuntimeError(f"unexpected {kind}")

    def _accept(self, message: Message) -> None:
        if self._transport.is_closing():
            return
        headers = self._response.headers
        del headers["Date"]
        for name, value in (*self._state.default_headers, *message.get("headers", ())):
            headers[name.decode("latin-1").lower()] = value.decode("latin-1")
        if subprotocol := message.get("subprotocol"):
            headers["Sec-WebSocket-Protocol"] = subprotocol
        self._is_accepted = True
        self._conn.send_response(self._response)
        del self._response
        self._flush()
        self._start_pinging()
        self._begin_reading()

    def _send_message(self, message: Message) -> None:
        if self._close_sent or self._conn.state is not State.OPEN:
            raise ClientDisconnected
        data = message.get("bytes")
        opcode = Opcode.TEXT if data is None else Opcode.BINARY
        payload = message["text"].encode() if data is None else data
        if self._conn.extensions and len(payload) >= MIN_BYTES:
            self._conn.send_frame(Frame(opcode, payload))
            self._flush()
        else:
            self._transport.write(encode_message(opcode, payload))

    def _close(self, message: Message) -> None:
        if self._close_sent or self._transport.is_closing():
            return
        if not self._is_accepted:
            self._put_disconnect(CloseCode.ABNORMAL_CLOSURE, "")
            self._reject(self._conn.reject(HTTPStatus.FORBIDDEN, ""))
            return
        code, reason = message.get("code", CloseCode.NORMAL_CLOSURE), message.get("reason") or ""
        self._put_disconnect(code, reason)
        self._conn.send_close(code, reason)
        self._flush()
        self._close_sent = True
        self._close_timer = self._loop.call_later(CLOSE_TIMEOUT_S, self._transport.close)
        if self._reader is not None:
            # Discard further messages, and wait for the client's close frame.
            self._reader.discard()
            self._awaits_authentication = False
            # A message that waits for memory would block reading forever.
            self._pending = None
            self._outlet.resume_reading()
            self._resume_parsing()

    def _answer(self, message: Message) -> None:
        """Collect an HTTP response, and send it once it is complete."""
        if message["type"] == "websocket.http.response.start":
            pairs = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in message["headers"]]
            self._refusal = message["status"], pairs, b""
            return
        if self._refusal is None:
            raise RuntimeError("a body without its start")
        status, pairs, body = self._refusal
        body += message.get("body", b"")
        self._refusal = status, pairs, body
        if message.get("more_body", False):
            return
        headers = Headers(pairs)
        headers.setdefault("Date", email.utils.formatdate(usegmt=True))
        headers.setdefault("Connection", "close")
        headers.setdefault("Content-Length", str(len(body)))
        headers.setdefault("Content-Type", "text/plain; charset=utf-8")
        self._put_disconnect(CloseCode.ABNORMAL_CLOSURE, "")
        self._reject(Response(status, HTTPStatus(status).phrase, headers, body))
