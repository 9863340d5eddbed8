"""Reads replies of RESP2 and RESP3 while their bytes arrive.

The parser is hiredis, in C: it keeps its position in a partial reply. A parser that starts over
with each chunk takes time quadratic in the size of a large reply, on an event loop that all
requests share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import hiredis

#: hiredis's type for a message that the server pushes.
Push = hiredis.PushNotification

_INCOMPLETE = object()


class RespProtocolError(ValueError):
    """The server does not speak the protocol, or sent too much data."""


class RespReader:
    """The replies of one connection. Errors are returned like other replies."""

    def __init__(self, error: Callable[[str], Exception], *, max_reply_bytes: int) -> None:
        self._reader = hiredis.Reader(
            protocolError=RespProtocolError, replyError=error, notEnoughData=_INCOMPLETE
        )
        self._max_reply_bytes = max_reply_bytes
        #: Received since the last complete reply.
        self._pending_bytes = 0

    def read(self, data: bytes) -> Iterator[object]:
        """Yield the replies that these bytes complete, or raise `RespProtocolError`."""
        self._pending_bytes += len(data)
        self._reader.feed(data)
        while (reply := self._reader.gets()) is not _INCOMPLETE:
            self._pending_bytes = 0
            yield reply
        if self._pending_bytes > self._max_reply_bytes:
            raise RespProtocolError("the server sent too much data")
