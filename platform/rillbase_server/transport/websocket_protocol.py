"""A WebSocket on a connection that began as HTTP.

The `websockets` library performs the handshake, the negotiation of compression and the sending, and
applications see the behaviour of uvicorn's protocol. Received data is handled by
`websocket_receiver.py` and `websocket_frames.py` instead, which bound memory:

- until the client is authenticated a message has at most 8 KiB, as sent and as inflated. A client
  whose handshake carried credentials is not rejected for more but not read until they are verified;
- after a message nothing more is parsed until the application asks for the next one;
- what messages take beyond 8 KiB comes from a memory that all connections share.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Generator
from http import HTTPStatus
from math import inf
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.server import ServerState
from websockets.exceptions import ProtocolError
from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol

from foundation.asgi import Message, Scope
from rillbase_server.transport.connection_table import ConnectionEntry
from rillbase_server.transport.frame_encoding import encode_message
from rillbase_server.transport.lazy_deflate import MIN_BYTES, LazyDeflate
from rillbase_server.transport.lingering_close import LingeringClose
from rillbase_server.transport.outgoing_flow import Backlog, OutgoingFlow
from rillbase_server.transport.rates import TransferProgress
from rillbase_server.transport.request_rejections import with_problem
from rillbase_server.transport.tables import table_of
from rillbase_server.transport.transport_limits import MAX_AT_ONCE_BYTES
from rillbase_server.transport.websocket_frames import ControlFrame, WebSocketViolation
from rillbase_server.transport.websocket_handshake import (
    COMPRESSION,
    RejectionResponse,
    accept,
    has_credentials,
    scope_of,
)
from rillbase_server.transport.websocket_receiver import WebSocketReceiver

log = logging.getLogger("uvicorn.error")

CLOSE_TIMEOUT_S = 10.0


def _no_parser() -> Generator[None, None, None]:
    yield


#: Replaces the library's parser, which is not used.
NO_PARSER = _no_parser()


class WebSocketProtocol(WebSocketReceiver):
    """One connection, from its handshake to its end."""

    # A dictionary of the attributes would take 1.6 kB per connection.
    __slots__ = (
        "__weakref__", "_app_state", "_bounds", "_close_sent", "_close_timer", "_config",
        "_is_accepted", "_is_lost", "_ping", "_progress", "_refusal", "_response",
        "_sign_due_s", "_state",
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
        super().__init__(table_of(server_state), _loop or asyncio.get_running_loop())
        self._bounds = self._table.bounds
        self._conn = ServerProtocol(
            extensions=COMPRESSION if config.ws_per_message_deflate else [], logger=log
        )
        self._is_accepted = False
        self._close_sent = False
        self._is_lost = False
        self._close_timer: asyncio.TimerHandle | None = None
        self._refusal: RejectionResponse | None = None
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
        self._table.reset_authentication(entry, self._on_authenticated)
        transport.set_protocol(self)
        self._has_credentials = has_credentials(request)
        response = self._conn.accept(request)
        self._conn.parser.close()
        self._conn.parser = NO_PARSER
        self._conn.extensions = [
            LazyDeflate(extension) if isinstance(extension, PerMessageDeflate) else extension
            for extension in self._conn.extensions
        ]
        if response.status_code != HTTPStatus.SWITCHING_PROTOCOLS:
            self._reject(response)
            return
        self._response = response
        self._put_event({"type": "websocket.connect"})
        app_state, at_once = self._app_state, self._send_at_once
        scope = scope_of(request, transport, self._config, app_state, entry, at_once)
        task = self._loop.create_task(self._run(scope))
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
            self._check_liveness(now_s)
        if self._reader is not None:
            self._reader.refill_allowances()
        if self._outlet.is_stuck(now_s):
            self._count("response_too_slow")
            self._transport.abort()
        elif self._reader is None or self._is_stopped or not self._reader.is_within_message:
            self._progress.pause()
        elif self._progress.is_too_slow(
            now_s,
            self._received_bytes,
            window_s=self._bounds.transfer_window_s,
            min_bytes_per_s=self._bounds.min_bytes_per_s,
        ):
            self._count("message_too_slow")
            self._fail(CloseCode.POLICY_VIOLATION, "the message arrives too slowly")

    def _flush(self) -> None:
        self._transport.write(b"".join(self._conn.data_to_send()))

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

    def _check_liveness(self, now_s: float) -> None:
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
        accept(self._response, self._state.default_headers, message)
        self._is_accepted = True
        self._conn.send_response(self._response)
        del self._response
        self._flush()
        self._start_pinging()
        self._begin_reading()

    def _send_message(self, message: Message) -> None:
        if not self._is_open:
            raise ClientDisconnected
        if (data := message.get("bytes")) is None:
            self._write(Opcode.TEXT, message["text"].encode())
        else:
            self._write(Opcode.BINARY, data)

    def _send_at_once(self, text: bytes) -> bool:
        """Send a short text message, unless the client has to read first."""
        if len(text) > MAX_AT_ONCE_BYTES or self._outlet.write_paused or not self._is_open:
            return False
        self._write(Opcode.TEXT, text)
        return True

    @property
    def _is_open(self) -> bool:
        is_over = self._is_lost or self._close_sent or self._transport.is_closing()
        return self._is_accepted and not is_over and self._conn.state is State.OPEN

    def _write(self, opcode: Opcode, payload: bytes) -> None:
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
            self._refusal = RejectionResponse(message)
            return
        if self._refusal is None:
            raise RuntimeError("a body without its start")
        if (response := self._refusal.add(message)) is not None:
            self._put_disconnect(CloseCode.ABNORMAL_CLOSURE, "")
            self._reject(response)
