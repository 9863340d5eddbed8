"""Reads replies of RESP2 and RESP3 while their bytes arrive.

The parser is hiredis, in C: it keeps its place in a reply that has arrived in part. A parser that
begins again with each chunk takes time in proportion to the square of a large reply, on an event
loop that everybody shares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import hiredis

#: Of hiredis: a message that the server sends without a command.
Push = hiredis.PushNotification

_INCOMPLETE = object()


class ProtocolError(ValueError):
    """The server does not speak the protocol, or sends too much."""


class RespReader:
    """The replies of one connection. Errors are returned like other replies."""

    def __init__(self, error: Callable[[str], Exception], *, max_reply_bytes: int) -> None:
        self._reader = hiredis.Reader(
            protocolError=ProtocolError, replyError=error, notEnoughData=_INCOMPLETE
        )
        self._max_reply_bytes = max_reply_bytes
        #: Received since the last whole reply.
        self._pending_bytes = 0

    def read(self, data: bytes) -> Iterator[object]:
        """Yield the replies that are whole with these bytes, or raise `ProtocolError`."""
        self._pending_bytes += len(data)
        self._reader.feed(data)
        while (reply := self._reader.gets()) is not _INCOMPLETE:
            self._pending_bytes = 0
            yield reply
        if self._pending_bytes > self._max_reply_bytes:
            raise ProtocolError("the server sends too much")
