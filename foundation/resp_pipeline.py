"""Commands and replies over one connection, for any version of RESP.

Commands of all tasks are pipelined, and replies come in their order. A command is sent at once if
none waits for its reply; otherwise those of the same iteration of the loop leave in one write.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from hiredis import pack_command

from foundation.resp_reader import Push, RespProtocolError, RespReader

R = TypeVar("R")

MAX_UNANSWERED = 10_000


@dataclass(frozen=True, slots=True)
class EncodedArguments:
    """Arguments already encoded for the protocol, as native code makes them."""

    count: int
    raw: bytes


Argument = bytes | str | int | EncodedArguments


class RespPipeline(asyncio.Protocol, Generic[R]):
    """The connection. Once closed it stays closed."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, answer_timeout_s: float, reader: RespReader
    ) -> None:
        self._loop = loop
        self._reader = reader
        self._answer_timeout_s = answer_timeout_s
        self._transport: asyncio.Transport | None = None
        self._unsent: list[bytes] = []
        self._waiting: deque[tuple[float, asyncio.Future[R]]] = deque()
        self._watch: asyncio.TimerHandle | None = None
        self.closed = False

    def unavailable(self, why: str) -> Exception:
        """Return the error for a command that gets no reply."""
        raise NotImplementedError

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are not subclasses of asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        if self.closed:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.close(f"the connection was lost: {exc}")

    def call(self, *command: Argument) -> asyncio.Future[R]:
        """Send a command. If no reply comes, its future gets the error of `unavailable`."""
        future: asyncio.Future[R] = self._loop.create_future()
        if self.closed or len(self._waiting) >= MAX_UNANSWERED:
            future.set_exception(self.unavailable("the server does not respond"))
            return future
        self._unsent.append(encoded(command))
        if not self._waiting:
            self._send()
        elif len(self._unsent) == 1:
            self._loop.call_soon(self._send)
        deadline = self._loop.time() + self._answer_timeout_s
        self._waiting.append((deadline, future))
        if self._watch is None:
            self._watch = self._loop.call_at(deadline, self._check_deadline)
        return future

    def data_received(self, data: bytes) -> None:
        try:
            for reply in self._reader.read(data):
                if isinstance(reply, Push):
                    self.pushed(reply)
                else:
                    self.answered(cast("R | Exception", reply))
        except (RespProtocolError, IndexError):
            self.close("the server does not speak the protocol")

    def pushed(self, message: Push) -> None:
        """Handle a message that the server pushes."""

    def answered(self, reply: R | Exception) -> None:
        """Pass a reply, or the server's error, to the caller that waits for it."""
        _, future = self._waiting.popleft()
        if future.done():
            return
        if isinstance(reply, Exception):
            future.set_exception(reply)
        else:
            future.set_result(reply)

    def close(self, why: str = "closed") -> None:
        """Close, and fail the calls that wait for a reply."""
        if self.closed:
            return
        self.closed = True
        if self._watch is not None:
            self._watch.cancel()
        if self._transport is not None:
            self._transport.abort()
        while self._waiting:
            _, future = self._waiting.popleft()
            if not future.done():
                future.set_exception(self.unavailable(why))
                # The caller may have been cancelled: mark the exception as retrieved.
                future.exception()

    def _send(self) -> None:
        if self._transport is not None and not self.closed:
            self._transport.write(b"".join(self._unsent))
        self._unsent.clear()

    def _check_deadline(self) -> None:
        """Close the connection when its oldest command has waited too long."""
        self._watch = None
        if not self._waiting:
            return
        deadline = self._waiting[0][0]
        if deadline <= self._loop.time():
            self.close("no response in time")
        else:
            self._watch = self._loop.call_at(deadline, self._check_deadline)


def encoded(command: Sequence[Argument]) -> bytes:
    """Return a command as it is sent."""
    *head, last = command
    try:
        if not isinstance(last, EncodedArguments):
            return _packed(command)
        _, _, arguments = _packed(head).partition(b"\r\n")
        return b"*%d\r\n%b%b" % (len(head) + last.count, arguments, last.raw)
    except TypeError:
        # The library packs only plain arguments.
        return _joined(command)


def _packed(command: Sequence[Argument]) -> bytes:
    packed: bytes = pack_command(cast("Any", tuple(command)))
    return packed


def _joined(command: Sequence[Argument]) -> bytes:
    count = len(command)
    parts = [b""]
    for argument in command:
        if isinstance(argument, EncodedArguments):
            count += argument.count - 1
            parts.append(argument.raw)
            continue
        raw = argument if isinstance(argument, bytes) else str(argument).encode()
        parts.append(b"$%d\r\n%b\r\n" % (len(raw), raw))
    parts[0] = b"*%d\r\n" % count
    return b"".join(parts)
