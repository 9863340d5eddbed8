"""What the request log records of a WebSocket: that it was opened and closed, and its messages."""

from __future__ import annotations

import time

from connections.callers import ConnectionCaller
from connections.messages import OBJECTS, Message
from foundation import request_context
from foundation.errors import ApiError
from tenants.request_log import recorder as request_recorder
from tenants.request_log.recorder import RequestEntry, RequestKind

METHOD = "WS"
SWITCHING_PROTOCOLS, OK = 101, 200
#: Types of messages that name no object. Other types are not shown: they are a client's text.
_PLAIN_TYPES = frozenset({"subscribe", "unsubscribe", "auth", "ping"})


class ConnectionRecorder:
    """Records one connection."""

    __slots__ = (
        "_actor",
        "_begin",
        "_caller",
        "_opened_by",
        "_path",
        "_request_id",
        "_tenant_id",
        "bytes_in",
        "bytes_out",
        "last_in",
    )

    def __init__(self, path: str, request_id: str) -> None:
        self._path = path
        self._request_id = request_id
        self._begin = time.perf_counter()
        #: None: it has not been opened, or was closed.
        self._opened_by: ConnectionCaller | None = None
        #: The caller of the last entry, and its names, which would cost more than the entry.
        self._caller: ConnectionCaller | None = None
        self._tenant_id = self._actor = ""
        self.bytes_in = 0
        self.bytes_out = 0
        #: The size of the message that was received last.
        self.last_in = 0

    def received(self, size_bytes: int) -> None:
        """Count a message."""
        self.last_in = size_bytes
        self.bytes_in += size_bytes

    def sent(self, size_bytes: int) -> None:
        """Count a frame."""
        self.bytes_out += size_bytes

    def opened(self, caller: ConnectionCaller) -> None:
        """Record that the caller has been admitted."""
        self._opened_by = caller
        self._note(caller, RequestKind.OPENED, self._path, SWITCHING_PROTOCOLS, self._begin)

    def closed(self, close_code: int) -> None:
        """Record the end of a connection, unless it had not been opened."""
        caller, self._opened_by = self._opened_by, None
        if caller is not None:
            sizes = self.bytes_in, self.bytes_out
            self._note(caller, RequestKind.CLOSED, self._path, close_code, self._begin, sizes)

    def answered(
        self, caller: ConnectionCaller | None, message: Message, bytes_out: int = 0
    ) -> None:
        """Record a message that succeeded."""
        self._note_message(caller, message, OK, bytes_out, "")

    def refused(self, caller: ConnectionCaller | None, message: Message, error: ApiError) -> None:
        """Record a message that failed."""
        self._note_message(caller, message, error.status, 0, error.code)

    def operation(self, caller: ConnectionCaller, begin: float, bytes_in: int, code: str) -> None:
        """Record an operation of GraphQL, whose errors are in its response."""
        route = f"{self._path} operation"
        self._note(caller, RequestKind.MESSAGE, route, OK, begin, (bytes_in, 0), code)

    def _note_message(
        self,
        caller: ConnectionCaller | None,
        message: Message,
        status: int,
        bytes_out: int,
        code: str,
    ) -> None:
        if caller is not None:
            sizes = message.size_bytes, bytes_out
            kind, route = RequestKind.MESSAGE, _route_of(message)
            self._note(caller, kind, route, status, message.begin, sizes, code)

    def _note(
        self,
        caller: ConnectionCaller,
        kind: RequestKind,
        route: str,
        status: int,
        begin: float,
        sizes: tuple[int, int] = (0, 0),
        code: str = "",
    ) -> None:
        if caller is not self._caller:
            self._caller, self._tenant_id = caller, str(caller.tenant.id)
            self._actor = caller.principal.actor[: request_recorder.MAX_TEXT_CHARS]
        request_recorder.note(
            RequestEntry(
                self._tenant_id,
                kind,
                METHOD,
                route,
                status,
                time.perf_counter() - begin,
                *sizes,
                self._actor,
                self._request_id,
                code,
            )
        )


def _route_of(message: Message) -> str:
    """Return the type of a message, with the object that it names."""
    for name in OBJECTS:
        if name in message.parameters:
            return request_recorder.route_name(f"{message.type} {{{name}}}", message.parameters)
    return message.type if message.type in _PLAIN_TYPES else "message"


class OperationRecord:
    """Records an operation of GraphQL once: when it is answered, or its stream has started."""

    __slots__ = ("_begin", "_bytes_in", "_caller", "_recorder")

    def __init__(self, recorder: ConnectionRecorder, caller: ConnectionCaller) -> None:
        """The operation is the message that was received last."""
        self._recorder: ConnectionRecorder | None = recorder
        self._caller = caller
        self._begin = time.perf_counter()
        self._bytes_in = recorder.last_in

    def complete(self) -> None:
        """Record it, unless it has been. Its error is that of the current context."""
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            code = request_context.error_code.get()
            recorder.operation(self._caller, self._begin, self._bytes_in, code)
