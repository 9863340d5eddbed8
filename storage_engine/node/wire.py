"""One connection to the storage node, in RESP3, for the event loop.

Pushes may come between any two replies and go to `on_push`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence
from typing import cast
from urllib.parse import SplitResult

from foundation.resp_pipeline import Argument, RespPipeline
from foundation.resp_reader import Push, RespReader

Reply = int | float | bool | bytes | None | list["Reply"] | dict[bytes, "Reply"]
#: Nothing that the node sends is larger: a page of publications with all their data.
MAX_REPLY_BYTES = 512 * 1024 * 1024
DEFAULT_PORT = 6379


class NodeUnavailable(Exception):
    """There is no connection, or no reply arrived."""


class CommandRejected(Exception):
    """The node rejected a command: `code` is for programs, the text for people."""

    def __init__(self, line: str) -> None:
        self.code, _, self.text = line.partition(" ")
        super().__init__(line)


class Wire(RespPipeline[Reply]):
    """The connection. Rejected commands raise `CommandRejected`, lost ones `NodeUnavailable`."""

    def __init__(
        self,
        *,
        answer_timeout_s: float,
        on_push: Callable[[list[Reply]], None] | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        reader = RespReader(CommandRejected, max_reply_bytes=MAX_REPLY_BYTES)
        super().__init__(asyncio.get_running_loop(), answer_timeout_s, reader)
        self._on_push = on_push
        self._on_close = on_close

    def unavailable(self, why: str) -> NodeUnavailable:
        return NodeUnavailable(why)

    async def open(
        self,
        parts: SplitResult,
        greeting: Sequence[tuple[Argument, ...]],
        timeout_s: float,
    ) -> None:
        """Connect, and send the first commands."""
        tls = ssl.create_default_context() if parts.scheme == "rediss" else None
        host, port = parts.hostname or "localhost", parts.port or DEFAULT_PORT
        try:
            async with asyncio.timeout(timeout_s):
                await self._loop.create_connection(lambda: self, host, port, ssl=tls)
                await asyncio.gather(*[self.call(*command) for command in greeting])
        except BaseException as error:
            self.close("not connected")
            if isinstance(error, (OSError, TimeoutError)):
                raise NodeUnavailable(f"cannot connect: {error}") from None
            raise

    def pushed(self, message: Push) -> None:
        if self._on_push is not None:
            # This runs after the tasks that wait for earlier replies.
            self._loop.call_soon(self._on_push, cast("list[Reply]", message))

    def close(self, why: str = "closed") -> None:
        was_closed = self.closed
        super().close(why)
        if not was_closed and self._on_close is not None:
            self._on_close()
