"""A library of Valkey functions, and the parsers of their replies.

A caller that finds a library missing loads it, so a server that was emptied or replaced needs no
manual step. A library's name has a version: processes of two releases may use theirs side by side.
"""

from __future__ import annotations

from pathlib import Path

from redis.exceptions import ResponseError

from foundation.resp_pipeline import Argument
from foundation.valkey_wire import Reply, ValkeyWire


class ValkeyFunctions:
    """The functions of one library, called with one key: the prefix of all that they touch."""

    def __init__(self, wire: ValkeyWire, library: str, source: Path, prefix: str) -> None:
        self._wire = wire
        self._library = library
        self._source = source
        self._prefix = prefix

    async def call(self, function: str, *arguments: Argument) -> Reply:
        """Call a function and return its reply; raise `RedisError` when there is none."""
        command: tuple[Argument, ...] = (
            "FCALL",
            f"{self._library}_{function}",
            1,
            self._prefix,
            *arguments,
        )
        try:
            return await self._wire.call(*command)
        except ResponseError as error:
            if "Function not found" not in str(error):
                raise
        await self._wire.call("FUNCTION", "LOAD", "REPLACE", self._source.read_bytes())
        return await self._wire.call(*command)


def items(reply: Reply, length: int) -> list[Reply]:
    """Read a list of `length` items."""
    if not isinstance(reply, list) or len(reply) != length:
        raise ResponseError("the function returned an unexpected type")
    return reply


def text(reply: Reply) -> str:
    if not isinstance(reply, bytes):
        raise ResponseError("expected text")
    return reply.decode()


def integer(reply: Reply) -> int:
    if not isinstance(reply, int):
        raise ResponseError("expected a number")
    return reply
