"""Splits HTTP/1.1 messages before they are passed to the parser, and limits their length.

llhttp is the authority on what a request is. It reports a header only when it is complete, and
copies the incomplete one for every piece. So it gets no more than the maximum length of a head, and
not the next request while one is being handled. For that, the data is split at the ends of heads,
of bodies, and of lines between chunks. A wrong split only makes a limit less exact: the parser gets
every byte, in order.
"""

from __future__ import annotations

from enum import Enum

_HEAD_END = b"\r\n\r\n"
#: Bytes of a chunk besides its data that do not count as excess: its size and line ends.
CHUNK_ALLOWANCE = 16


class HeadTooLarge(Exception):
    """A head, the trailers or the extensions of chunks have too many bytes."""


class FramingPhase(Enum):
    """The part of the message to which the next bytes belong."""

    HEAD = "head"
    DATA = "data"
    #: A line between chunks: a size with extensions, an end of data, or a trailer.
    LINE = "line"


class Framing:
    """Splits the requests of one connection."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self.phase = FramingPhase.HEAD
        #: Bytes of the head so far, and of empty lines before it.
        self.head_bytes = 0
        self._head_tail = b""
        self._remaining = 0
        self._chunked = False
        self._line = bytearray()
        self._excess_bytes = 0

    def is_head(self, data: bytes) -> bool:
        """Return whether bytes are exactly one head, as in nearly all reads; if so, count them."""
        size = len(data)
        if self.head_bytes or self.phase is not FramingPhase.HEAD or size > self._max_bytes:
            return False
        if data.find(_HEAD_END) != size - len(_HEAD_END):
            return False
        self.head_bytes = size
        return True

    def piece(self, data: bytes, begin: int) -> int:
        """Return the end of the piece that begins here. The caller feeds it to the parser."""
        if self.phase is FramingPhase.HEAD:
            return self._head_piece(data, begin)
        if self.phase is FramingPhase.DATA:
            return self._data_piece(data, begin)
        return self._line_piece(data, begin)

    def body_follows(self, length: int | None) -> None:
        """Record the end of the head of a request with a body: of `length`, or in chunks."""
        self._chunked = length is None
        self.phase = FramingPhase.LINE if length is None else FramingPhase.DATA
        self._remaining = length or 0

    def chunk_begins(self) -> None:
        """Record that the last line was the head of a chunk."""
        try:
            size = int(bytes(self._line).partition(b";")[0], 16)
        except ValueError:
            return
        self._excess_bytes = max(0, self._excess_bytes - CHUNK_ALLOWANCE - 2 * size)
        if size > 0:
            self.phase, self._remaining = FramingPhase.DATA, size

    def message_ends(self) -> None:
        """Record that the request is complete."""
        self.phase = FramingPhase.HEAD
        self.head_bytes = 0
        self._head_tail = b""
        if self._chunked:
            self._chunked = False
            self._excess_bytes = 0
            self._line.clear()

    def _head_piece(self, data: bytes, begin: int) -> int:
        end = self._head_end(data, begin)
        self.head_bytes += end - begin
        if self.head_bytes > self._max_bytes:
            raise HeadTooLarge
        self._head_tail = (self._head_tail + data[max(begin, end - 3) : end])[-3:]
        return end

    def _head_end(self, data: bytes, begin: int) -> int:
        tail = self._head_tail
        if tail:
            index = (tail + data[begin : begin + 3]).find(_HEAD_END)
            if index >= 0:
                return begin + index + len(_HEAD_END) - len(tail)
        index = data.find(_HEAD_END, begin)
        return len(data) if index < 0 else index + len(_HEAD_END)

    def _data_piece(self, data: bytes, begin: int) -> int:
        end = min(len(data), begin + self._remaining)
        self._remaining -= end - begin
        if self._chunked and self._remaining == 0:
            self.phase = FramingPhase.LINE
        return end

    def _line_piece(self, data: bytes, begin: int) -> int:
        if self._line.endswith(b"\n"):
            self._line.clear()
        end = data.find(b"\n", begin) + 1 or len(data)
        self._excess_bytes += end - begin
        if self._excess_bytes > self._max_bytes:
            raise HeadTooLarge
        self._line += data[begin:end]
        return end
