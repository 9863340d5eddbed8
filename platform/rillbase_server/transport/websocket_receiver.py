"""The receiving side of a WebSocket: from bytes to the events of its application.

`websocket_frames.py` parses one step at a time. This module decides when to take the next step:
while the application works on a message, or no memory is left for one, nothing is read.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod

from websockets.extensions.permessage_deflate import PerMessageDeflate
from websockets.frames import CloseCode
from websockets.server import ServerProtocol

from foundation.asgi import Message
from foundation.metrics import CONNECTIONS_CLOSED
from rillbase_server.transport.connection_table import ConnectionEntry, ConnectionTable
from rillbase_server.transport.outgoing_flow import OutgoingFlow
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

#: Maximum steps before other connections get a turn.
STEPS_AT_ONCE = 16
#: Bytes per read before authentication, which limits unparsed data.
GREETING_READ_BYTES = 8 * 1024


class WebSocketReceiver(asyncio.BufferedProtocol):
    """The receiving side of one connection. Its subclass owns the connection and sends."""

    __slots__ = (
        "_awaits_authentication", "_behind", "_claim", "_conn", "_entry", "_events",
        "_has_credentials", "_has_delivered", "_is_stopped", "_loop", "_outlet", "_pending",
        "_reader", "_received_bytes", "_table", "_transport", "_waiter",
    )  # fmt: skip

    _conn: ServerProtocol
    _entry: ConnectionEntry
    _has_credentials: bool
    _outlet: OutgoingFlow
    _transport: asyncio.Transport

    def __init__(self, table: ConnectionTable, loop: asyncio.AbstractEventLoop) -> None:
        self._table = table
        self._loop = loop
        self._events: list[Message] = []
        #: What `_receive` has returned, until there is an event.
        self._waiter: asyncio.Future[Message] | None = None
        self._reader: FrameReader | None = None
        self._claim = table.memory.begin()
        self._behind = b""
        self._is_stopped = True
        self._has_delivered = False
        #: A complete message that waits for memory.
        self._pending: ReceivedMessage | None = None
        self._awaits_authentication = False
        self._received_bytes = 0

    @abstractmethod
    def _control(self, frame: ControlFrame) -> bool:
        """Handle a control frame; return whether to continue."""

    @abstractmethod
    def _fail(self, code: CloseCode, reason: str) -> None:
        """Close the connection because of a client error."""

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

    def _put_disconnect(self, code: int, reason: str) -> None:
        self._put_event({"type": "websocket.disconnect", "code": code, "reason": reason})

    def _put_event(self, event: Message) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is None or waiter.done():
            self._events.append(event)
        else:
            waiter.set_result(event)

    def _receive(self) -> asyncio.Future[Message]:
        """Return the next event. Releases the previous message, unless its claim is kept.

        The event is returned as a future, because Channels starts a task for everything else.
        """
        if self._has_delivered and not self._events:
            self._has_delivered = False
            self._release()
            if self._reader is not None:
                self._resume_parsing()
        event: asyncio.Future[Message] = self._loop.create_future()
        if self._events:
            event.set_result(self._events.pop(0))
        else:
            self._waiter = event
        return event

    def _count(self, reason: str) -> None:
        CONNECTIONS_CLOSED.labels(reason).inc()
