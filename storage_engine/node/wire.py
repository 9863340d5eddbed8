"""One connection to the storage node, in RESP3, for the event loop.

Pushes may come between any two replies and go to `on_push`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from urllib.parse import SplitResult

from foundation.resp_pipeline import Argument, RespPipeline

Reply = int | float | bool | bytes | None | list["Reply"] | dict[bytes, "Reply"]
#: Nothing that the node sends is larger: a page of publications with all their data.
MAX_REPLY_BYTES = 512 * 1024 * 1024
DEFAULT_PORT = 6379


class NodeAway(Exception):
    """There is no connection, or no answer came over it."""


class Refused(Exception):
    """The node refused a command: `code` is for programs, the text for people."""

    def __init__(self, line: str) -> None:
        self.code, _, self.text = line.partition(" ")
        super().__init__(line)


class Garbled(ValueError):
    """What came is no RESP3."""


class Push(list[Reply]):
    """What the node says unasked."""


class Wire(RespPipeline[Reply]):
    """The connection. Commands that are refused raise `Refused`, those without reply `NodeAway`."""

    def __init__(
        self,
        *,
        answer_timeout_s: float,
        on_push: Callable[[list[Reply]], None] | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(asyncio.get_running_loop(), answer_timeout_s)
        self._on_push = on_push
        self._on_close = on_close
        self._received = bytearray()
        #: How much has to be there before the next reply can be whole.
        self._wanted = 0

    def away(self, why: str) -> NodeAway:
        return NodeAway(why)

    async def open(
        self,
        parts: SplitResult,
        greeting: Sequence[tuple[Argument, ...]],
        timeout_s: float,
    ) -> None:
        """Connect, and say what a connection begins with."""
        tls = ssl.create_default_context() if parts.scheme == "rediss" else None
        host, port = parts.hostname or "localhost", parts.port or DEFAULT_PORT
        try:
            async with asyncio.timeout(timeout_s):
                await self._loop.create_connection(lambda: self, host, port, ssl=tls)
                await asyncio.gather(*[self.call(*command) for command in greeting])
        except BaseException as away:
            self.close("not connected")
            if isinstance(away, (OSError, TimeoutError)):
                raise NodeAway(f"cannot connect: {away}") from None
            raise

    def data_received(self, data: bytes) -> None:
        self._received += data
        if len(self._received) < self._wanted:
            return
        reader = Reader(bytes(self._received))
        try:
            while not isinstance(reply := reader.next(), Incomplete):
                self._take(reply)
        except (ValueError, IndexError, RecursionError):
            self.close("the server does not speak the protocol")
            return
        del self._received[: reader.taken]
        self._wanted = reader.wanted - reader.taken
        if max(len(self._received), self._wanted) > MAX_REPLY_BYTES:
            self.close("the server sends too much")

    def _take(self, reply: Reply | Refused) -> None:
        if isinstance(reply, Push):
            if self._on_push is not None:
                # In its turn behind whoever waits for the replies that came before it.
                self._loop.call_soon(self._on_push, reply)
            return
        self.answered(reply)

    def close(self, why: str = "closed") -> None:
        was_closed = self.closed
        super().close(why)
        if not was_closed and self._on_close is not None:
            self._on_close()


class Incomplete:
    """The reply has not come whole yet."""


_INCOMPLETE = Incomplete()


class Reader:
    """Reads replies from bytes. `taken` is where the last whole one ended."""

    def __init__(self, received: bytes) -> None:
        self._received = received
        self._position = 0
        self.taken = 0
        #: Where the bytes must reach before the next reply can be whole; 0: not known.
        self.wanted = 0

    def next(self) -> Reply | Refused | Incomplete:
        """Return the next reply, a `Refused` among them, or `_INCOMPLETE`."""
        self._position = self.taken
        reply = self._value()
        if reply is not _INCOMPLETE:
            self.taken = self._position
        return reply

    def _value(self) -> Reply | Refused | Incomplete:
        end = self._received.find(b"\r\n", self._position)
        if end < 0:
            return _INCOMPLETE
        kind, line = self._received[self._position], self._received[self._position + 1 : end]
        self._position = end + 2
        match chr(kind):
            case "$" | "=":
                return self._bytes(int(line), skipped=4 if chr(kind) == "=" else 0)
            case "!":
                return self._refused(int(line))
            case "*" | "~" | ">":
                return self._items(int(line), push=chr(kind) == ">")
            case "%":
                return self._pairs(int(line))
            case simple:
                return _simple(simple, line)

    def _bytes(self, length: int, *, skipped: int) -> Reply | Incomplete:
        if length < 0:
            return None
        start, end = self._position, self._position + length
        if len(self._received) < end + 2:
            self.wanted = end + 2
            return _INCOMPLETE
        self._position = end + 2
        return self._received[start + skipped : end]

    def _refused(self, length: int) -> Refused | Incomplete:
        found = self._bytes(length, skipped=0)
        return Refused(found.decode(errors="replace")) if isinstance(found, bytes) else _INCOMPLETE

    def _items(self, length: int, *, push: bool) -> Reply | Incomplete:
        if length < 0:
            return None
        items: list[Reply] = Push() if push else []
        for _ in range(length):
            item = self._value()
            if isinstance(item, Incomplete):
                return item
            if isinstance(item, Refused):
                raise Garbled(item.code)
            items.append(item)
        return items

    def _pairs(self, length: int) -> Reply | Incomplete:
        found: dict[bytes, Reply] = {}
        for _ in range(length):
            name, value = self._value(), self._value()
            if isinstance(name, Incomplete) or isinstance(value, Incomplete):
                return _INCOMPLETE
            if not isinstance(name, bytes) or isinstance(value, Refused):
                raise Garbled(repr(name))
            found[name] = value
        return found


def _simple(kind: str, line: bytes) -> Reply | Refused:
    match kind:
        case "+":
            return line
        case "-":
            return Refused(line.decode(errors="replace"))
        case ":" | "(":
            return int(line)
        case ",":
            return float(line)
        case "#":
            return line == b"t"
        case "_":
            return None
        case _:
            raise ValueError(kind)
