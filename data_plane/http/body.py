"""The body of a request, as it streams in."""

from __future__ import annotations

from collections.abc import AsyncIterator

from data_plane.http.head import Head
from foundation.asgi import Receive
from foundation.errors import BodyTooLarge, UnsupportedMediaType

JSON = "application/json"


class ClientGone(Exception):
    """The client hung up before its body was complete."""


class Body:
    """Reads once, either whole or part by part. The edge bounds the bytes that arrive."""

    def __init__(self, head: Head, receive: Receive) -> None:
        self._head = head
        self._receive = receive

    @property
    def media_type(self) -> str:
        """The body's type without parameters; JSON unless the client says otherwise."""
        return self._head.headers.get("content-type", JSON).partition(";")[0].strip().lower()

    def require(self, *media_types: str) -> str:
        """Return the body's type if it is one of these."""
        found = self.media_type
        if found not in media_types:
            raise UnsupportedMediaType(f"Send {' or '.join(media_types)}.")
        return found

    async def read(self, max_bytes: int) -> bytes:
        """Return the whole body."""
        message = await self._receive()
        first: bytes = message.get("body", b"")
        if message["type"] == "http.request" and not message.get("more_body", False):
            _check(len(first), max_bytes)
            return first
        parts = bytearray()
        while True:
            if message["type"] == "http.disconnect":
                raise ClientGone
            parts += message.get("body", b"")
            _check(len(parts), max_bytes)
            if not message.get("more_body", False):
                return bytes(parts)
            message = await self._receive()

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives; nothing more is asked for while a part is being used."""
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            if part := message.get("body", b""):
                yield part
            if not message.get("more_body", False):
                return

    async def closed(self) -> None:
        """Return when the client has hung up. For answers that go on; the body has been read."""
        while (await self._receive())["type"] != "http.disconnect":
            continue


def _check(length: int, max_bytes: int) -> None:
    if length > max_bytes:
        raise BodyTooLarge(f"At most {max_bytes} bytes are accepted here.")
