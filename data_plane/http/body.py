"""The body of a request, as it arrives."""

from __future__ import annotations

from collections.abc import AsyncIterator

from data_plane.http.head import CallHead
from foundation.asgi import Receive
from foundation.environment import environment
from foundation.errors import BodyTooLarge, UnsupportedMediaType
from foundation.message_memory import MemoryClaim, MessageMemory
from foundation.per_loop import PerLoop

JSON = "application/json"
#: Memory for processing a body, in multiples of its size.
WORK_FACTOR = 3

_memories = PerLoop(lambda: MessageMemory(environment().rillbase_body_memory_mib * 1024 * 1024))


class ClientGone(Exception):
    """The client disconnected before its body was complete."""


class RequestBody:
    """Reads once, either whole or part by part. The edge bounds the bytes that arrive.

    A whole body has a claim on the memory for all bodies until `release`. The first part has none,
    because the server bounds its size.
    """

    def __init__(self, head: CallHead, receive: Receive) -> None:
        self._head = head
        self._receive = receive
        self._claim: MemoryClaim | None = None

    @property
    def media_type(self) -> str:
        """The body's type without parameters; JSON unless the client says otherwise."""
        return self._head.headers.get("content-type", JSON).partition(";")[0].strip().lower()

    def require(self, *media_types: str) -> str:
        """Return the body's type if it is one of these."""
        media_type = self.media_type
        if media_type not in media_types:
            raise UnsupportedMediaType(f"Send {' or '.join(media_types)}.")
        return media_type

    async def read(self, max_bytes: int) -> bytes:
        """Return the whole body."""
        message = await self._receive()
        first: bytes = message.get("body", b"")
        if message["type"] == "http.request" and not message.get("more_body", False):
            _check(len(first), max_bytes)
            return first
        parts = bytearray()
        memory = _memories.get()
        claim = self._claim = memory.begin()
        while True:
            if message["type"] == "http.disconnect":
                raise ClientGone
            part = message.get("body", b"")
            _check(len(parts) + len(part), max_bytes)
            await memory.extended(claim, len(part))
            parts += part
            if not message.get("more_body", False):
                await memory.extended(claim, WORK_FACTOR * len(parts))
                return bytes(parts)
            message = await self._receive()

    def release(self) -> None:
        """Release the memory of a body that has been processed."""
        if self._claim is not None:
            self._claim.release()
            self._claim = None

    async def parts(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives; nothing is read while the caller processes a part."""
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            if part := message.get("body", b""):
                yield part
            if not message.get("more_body", False):
                return

    async def closed(self) -> None:
        """Return when the client has disconnected. For streamed responses, after the body has
        been read.
        """
        while (await self._receive())["type"] != "http.disconnect":
            continue


def _check(length: int, max_bytes: int) -> None:
    if length > max_bytes:
        raise BodyTooLarge(f"The body may have at most {max_bytes} bytes.")
