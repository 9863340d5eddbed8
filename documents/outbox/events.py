"""The event layer as its users see it: a library of Valkey functions, and the write streams."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from redis.exceptions import RedisError, ResponseError

from documents.backend import Backend
from foundation.resp_pipeline import Argument, EncodedArguments
from foundation.valkey_functions import (
    ValkeyFunctions,
    divide_into_calls,
    integer,
    items,
    text,
)
from foundation.valkey_wire import Reply, ValkeyWire

_SOURCE = Path(__file__).with_name("events.lua")
_LIBRARY = "rillbase_events_4"
#: After-images are retained so that queries registered in the meantime can be matched with them.
RETENTION_MS = 10_000
RETENTION_BYTES = 256 * 1024 * 1024
#: More entries of one call would take the server more than a few milliseconds.
MAX_CALL_ENTRIES = 250
_ROOT = "{rillbase}:events:"
#: Follows the installation epoch in the names of the streams that receive a backend's writes.
_SUFFIX = {Backend.POSTGRES: "", Backend.NATIVE: "n1"}
_INSTALLATION = re.compile(rf"{re.escape(_ROOT)}(\d+)(?:n\d+)?(?::|\Z)")
_HASH_BYTES = 4


class AppendVerdict(StrEnum):
    """The outcome of the function."""

    OK = "ok"
    #: The server has no data, or lost it: a relay has to initialise it.
    ABSENT = "absent"
    #: A newer relay has taken over.
    OUTRUN = "outrun"
    #: The stamp is too old, or lies in the future.
    LATE = "late"
    AHEAD = "ahead"
    #: The request was created for a different server, or for other streams.
    REBORN = "reborn"


@dataclass(frozen=True, slots=True)
class AppendResult:
    """The verdict, with Valkey's time in microseconds of the call."""

    verdict: AppendVerdict
    time_us: int


@dataclass(frozen=True, slots=True)
class EventLayerStatus:
    """What an event layer server reports about itself."""

    time_us: int
    run_id: str
    #: Created with the streams; empty if there are none.
    random: str
    #: The incarnation, as hex, in which all retained rows have been published.
    complete: str
    epochs: str
    #: Where the writer of the streams continues; empty if it has not sent a tick yet.
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class EntryGroup:
    """Entries with their keys' hashes. With `batch_hashes` they are an atomic batch."""

    entries: Sequence[tuple[int, bytes]]
    batch_hashes: Sequence[int] | None = None

    @property
    def size(self) -> int:
        return len(self.entries)

    @property
    def size_bytes(self) -> int:
        return sum(len(entry) for _, entry in self.entries)

    def divide(self) -> list[EntryGroup]:
        """Return groups that fit into a call. An atomic batch is not divided."""
        if self.batch_hashes is not None:
            return [self]
        calls = divide_into_calls(self.entries, lambda entry: (1, len(entry[1])), MAX_CALL_ENTRIES)
        return [EntryGroup(entries) for entries in calls]

    def arguments(self) -> list[Argument]:
        """Return the group as arguments of the function."""
        arguments: list[Argument] = [packed_hashes(self.batch_hashes), len(self.entries)]
        for entry in self.entries:
            arguments += entry
        return arguments


@dataclass(frozen=True, slots=True)
class PackedGroup:
    """A group whose entries, each a hash and its bytes, are arguments already."""

    size: int
    entries: bytes
    batch_hashes: Sequence[int] | None = None

    @property
    def size_bytes(self) -> int:
        return len(self.entries)

    def divide(self) -> list[PackedGroup]:
        """Return the group: it was packed so that it fits into a call."""
        return [self]

    def arguments(self) -> list[Argument]:
        packed = EncodedArguments(2 * self.size, self.entries)
        return [packed_hashes(self.batch_hashes), self.size, packed]


class EventLayer:
    """The streams of one installation epoch that receive a backend's writes. Every method may raise
    `RedisError`.
    """

    def __init__(
        self, wire: ValkeyWire, installation: int, backend: Backend = Backend.POSTGRES
    ) -> None:
        self._wire = wire
        self._installation = installation
        self._functions = ValkeyFunctions(wire, _LIBRARY, _SOURCE, prefix(installation, backend))

    @property
    def installation(self) -> int:
        return self._installation

    async def append(
        self, stamp_us: int, token: int | None, groups: Sequence[EntryGroup | PackedGroup]
    ) -> AppendResult:
        """Append groups of entries in order, in calls of bounded size. If one is rejected, earlier
        ones have been appended; a group that is an atomic batch is appended as a whole or not at
        all. Only a relay has a token.
        """
        parts = [part for group in groups for part in group.divide()]
        *calls, last_call = list(_calls(parts)) or [[]]
        for call in calls:
            result = await self._append(stamp_us, token, call)
            if result.verdict is not AppendVerdict.OK:
                return result
        return await self._append(stamp_us, token, last_call)

    async def _append(
        self, stamp_us: int, token: int | None, groups: Sequence[EntryGroup | PackedGroup]
    ) -> AppendResult:
        arguments: list[Argument] = [stamp_us, "" if token is None else token]
        for group in groups:
            arguments += group.arguments()
        return _answer(await self._functions.call("append", *arguments))

    async def tick(
        self,
        stamp_us: int,
        token: int,
        status: EventLayerStatus,
        incarnation: bytes,
        body: bytes,
        cursor: str = "",
    ) -> AppendResult:
        """Append a tick to every stream, if the server is still the one that was examined, and
        record where the writer continues.
        """
        server = (status.run_id, status.random)
        return _answer(
            await self._functions.call(
                "tick", stamp_us, token, *server, incarnation.hex(), body, cursor
            )
        )

    async def read_status(self) -> EventLayerStatus:
        time_us, *texts = items(await self._functions.call("look"), 6)
        return EventLayerStatus(integer(time_us), *(text(item) for item in texts))

    async def install(
        self,
        token: int,
        epochs: str,
        retention_ms: int = RETENTION_MS,
        retention_bytes: int = RETENTION_BYTES,
        *,
        replaced: str | None = None,
    ) -> AppendResult:
        """Create the streams, or update their epochs; forget older installations. With `replaced`,
        create empty streams in place of those with this random value, or of none if it is empty.
        """
        if await self._forget_older():
            return AppendResult(AppendVerdict.OUTRUN, (await self.read_status()).time_us)
        arguments = (token, secrets.token_hex(8), epochs, retention_ms, retention_bytes)
        if replaced is None:
            return _answer(await self._functions.call("install", *arguments))
        return _answer(await self._functions.call("replace", *arguments, replaced))

    async def trim(self) -> AppendResult:
        return _answer(await self._functions.call("trim"))

    async def _forget_older(self) -> bool:
        """Remove the streams of older installation epochs; return whether there is a newer one."""
        cursor, newer = "0", False
        while True:
            reply = await self._wire.call("SCAN", cursor, "MATCH", f"{_ROOT}*", "COUNT", 1000)
            if not isinstance(reply, list) or not isinstance(reply[1], list):
                raise ResponseError("SCAN returned an unexpected type")
            installations = {key: _installation(key) for item in reply[1] if (key := text(item))}
            newer = newer or any(number > self._installation for number in installations.values())
            old = [key for key, number in installations.items() if 0 < number < self._installation]
            if old:
                await self._wire.call("UNLINK", *old)
            cursor = text(reply[0])
            if cursor == "0":
                return newer


def prefix(installation: int, backend: Backend = Backend.POSTGRES) -> str:
    """Return the prefix of all names of an installation epoch and a backend."""
    return f"{_ROOT}{installation}{_SUFFIX[backend]}"


def stream(
    installation: int, epoch: int, partition: int, backend: Backend = Backend.POSTGRES
) -> str:
    """Return the name of a write stream."""
    return f"{prefix(installation, backend)}:{epoch}:{partition}"


def _installation(key: str) -> int:
    """Return the installation epoch in a name, or 0."""
    matched = _INSTALLATION.match(key)
    return int(matched[1]) if matched else 0


def packed_hashes(hashes: Sequence[int] | None) -> bytes:
    return b"".join(number.to_bytes(_HASH_BYTES, "big") for number in hashes or ())


def _calls(
    groups: Sequence[EntryGroup | PackedGroup],
) -> Iterator[list[EntryGroup | PackedGroup]]:
    return divide_into_calls(groups, lambda group: (group.size, group.size_bytes), MAX_CALL_ENTRIES)


def _answer(reply: Reply) -> AppendResult:
    verdict, time_us = items(reply, 2)
    try:
        return AppendResult(AppendVerdict(text(verdict)), integer(time_us))
    except ValueError as error:
        raise ResponseError(str(error)) from None


__all__ = [
    "AppendResult",
    "AppendVerdict",
    "EntryGroup",
    "EventLayer",
    "EventLayerStatus",
    "PackedGroup",
    "RedisError",
    "prefix",
    "stream",
]
