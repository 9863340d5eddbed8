"""A stream of bytes as lines, decompressed if need be. Memory stays small whatever comes."""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, AsyncIterator

from foundation.errors import BodyTooLarge, InvalidBody, UnsupportedMediaType

MAX_LINE_BYTES = 16 * 1024 * 1024
_STEP_BYTES = 256 * 1024
_GZIP_WINDOW = 31


async def decoded(
    parts: AsyncIterator[bytes], encoding: str, max_bytes: int
) -> AsyncIterator[bytes]:
    """Decompress `gzip`, a little at a time; count what comes out."""
    total = 0
    async for part in _plain(parts, encoding):
        total += len(part)
        if total > max_bytes:
            raise BodyTooLarge(f"At most {max_bytes} bytes are accepted, decompressed.")
        yield part


async def _plain(parts: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    if encoding in ("", "identity"):
        async for part in parts:
            yield part
        return
    if encoding != "gzip":
        raise UnsupportedMediaType("The only Content-Encoding is gzip.")
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    try:
        async for part in parts:
            rest = part
            while rest:
                yield unpacker.decompress(rest, _STEP_BYTES)
                rest = unpacker.unconsumed_tail
    except zlib.error as damaged:
        raise InvalidBody(f"The gzip stream is damaged: {damaged}.") from None
    if not unpacker.eof:
        raise InvalidBody("The gzip stream ends too early.")


async def lines(parts: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield lines without their ends. The last one may lack its end."""
    kept = bytearray()
    async for part in parts:
        kept += part
        if b"\n" in part:
            *complete, rest = kept.split(b"\n")
            for line in complete:
                yield bytes(_checked(line))
            kept = bytearray(rest)
        _checked(kept)
    if kept:
        yield bytes(kept)


def _checked(line: bytes | bytearray) -> bytes | bytearray:
    if len(line) > MAX_LINE_BYTES:
        raise BodyTooLarge(f"A line has at most {MAX_LINE_BYTES} bytes.")
    return line
