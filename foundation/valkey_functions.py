"""A library of Valkey functions, and the parsers of their replies.

A caller that finds a library missing loads it, so a server that was emptied or replaced needs no
manual step. A library's name has a version: processes of two releases may use theirs side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TypeVar

from redis.exceptions import ResponseError

from foundation.resp_pipeline import Argument
from foundation.valkey_wire import Reply, ValkeyWire

#: The server does nothing else during a call. With this many bytes of arguments it takes a few
#: milliseconds, unless a single part of the call is larger.
MAX_CALL_BYTES = 512 * 1024

_Part = TypeVar("_Part")


def divide_into_calls(
    parts: Iterable[_Part], size: Callable[[_Part], tuple[int, int]], max_entries: int
) -> Iterator[list[_Part]]:
    """Divide the parts of a call, in their order, so that each call has a bounded size. `size`
    returns a part's number of entries and bytes.
    """
    call, entries, size_bytes = list[_Part](), 0, 0
    for part in parts:
        part_entries, part_bytes = size(part)
        is_full = entries + part_entries > max_entries or size_bytes + part_bytes > MAX_CALL_BYTES
        if call and is_full:
            yield call
            call, entries, size_bytes = [], 0, 0
        call.append(part)
        entries, size_bytes = entries + part_entries, size_bytes + part_bytes
    if call:
        yield call


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
