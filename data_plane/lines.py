"""A stream of bytes as lines, decompressed if necessary. Memory stays small for any input."""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator

from foundation.errors import BodyTooLarge, InvalidBody, UnsupportedMediaType
from foundation.event_loop_budget import EventLoopBudget

MAX_LINE_BYTES = 16 * 1024 * 1024
_STEP_BYTES = 256 * 1024
#: Bytes that are decompressed at once. The rest is copied whenever a member of the file ends.
_INPUT_BYTES = 8 * 1024
_GZIP_WINDOW = 31


async def decoded(
    parts: AsyncIterator[bytes], encoding: str, max_bytes: int
) -> AsyncIterator[bytes]:
    """Decompress `gzip` in small steps, and bound the bytes that come out.

    A few compressed bytes can keep a decoder busy for long, so other requests get the event loop
    between the steps.
    """
    total, budget = 0, EventLoopBudget()
    async for part in _plain(parts, encoding):
        total += len(part)
        if total > max_bytes:
            raise BodyTooLarge(f"The body may have at most {max_bytes} bytes after decompression.")
        if part:
            yield part
        await budget.yield_if_spent()


async def _plain(parts: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    if encoding in ("", "identity"):
        async for part in parts:
            yield part
        return
    if encoding != "gzip":
        raise UnsupportedMediaType("The only supported Content-Encoding is gzip.")
    unpacker = _Gunzip()
    try:
        async for part in parts:
            for start in range(0, len(part), _INPUT_BYTES):
                for output in unpacker.decompress(part[start : start + _INPUT_BYTES]):
                    yield output
    except zlib.error as error:
        raise InvalidBody(f"The gzip stream is damaged: {error}.") from None
    if not unpacker.is_complete:
        raise InvalidBody("The gzip stream is truncated.")


class _Gunzip:
    """Decompresses a gzip file: one or more members, and zeros as padding after them. What follows
    a member belongs to the next one. A decoder that has reached its end would keep all of it in
    memory, and copy it with every call.
    """

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP_WINDOW)

    @property
    def is_complete(self) -> bool:
        return self._member.eof

    def decompress(self, data: bytes) -> Iterator[bytes]:
        """Yield what `data` adds, in pieces of at most `_STEP_BYTES`; some may be empty."""
        while data:
            if self._member.eof:
                data = data.lstrip(b"\0")
                if not data:
                    return
                self._member = zlib.decompressobj(_GZIP_WINDOW)
            yield self._member.decompress(data, _STEP_BYTES)
            data = self._member.unused_data or self._member.unconsumed_tail


async def lines(parts: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield lines without their ends. The last one may lack its end."""
    buffer, budget = bytearray(), EventLoopBudget()
    async for part in parts:
        buffer += part
        if b"\n" in part:
            *complete, rest = buffer.split(b"\n")
            for line in complete:
                yield bytes(_check_length(line))
                if budget.is_spent:
                    await budget.yield_if_spent()
            buffer = bytearray(rest)
        _check_length(buffer)
    if buffer:
        yield bytes(buffer)


def _check_length(line: bytes | bytearray) -> bytes | bytearray:
    if len(line) > MAX_LINE_BYTES:
        raise BodyTooLarge(f"A line may have at most {MAX_LINE_BYTES} bytes.")
    return line
