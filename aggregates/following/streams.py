"""The write streams of a grid epoch, read without gaps.

A tick says how many entries its stream has ever received. A reader that has counted fewer has
missed some, and a reader that meets a tick of another incarnation of Valkey, PostgreSQL or the
storage node cannot know what lies between. Each backend has grid epochs of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from redis.exceptions import ResponseError

from documents.backend import Backend
from documents.outbox.database import relay_pool
from documents.outbox.entries import Image, Tick, TransactionSnapshot, decode
from documents.outbox.events import stream
from foundation.postgres import Statement
from foundation.postgres.session import Oid
from foundation.valkey_wire import Reply, ValkeyWire

#: Entries of each stream that one read returns, and how long it waits for the first.
AT_ONCE, WAIT_MS = 250, 200
_ENTRY_PARTS = 2

_NEWEST = Statement(
    "SELECT i.epoch, g.number, g.write_partitions FROM documents_installation i, "
    "documents_gridepoch g WHERE g.retired_at IS NULL AND g.tenant_id IS NULL "
    "AND g.backend = $1 ORDER BY g.number DESC LIMIT 1",
    (Oid.TEXT,),
)


class StreamGap(Exception):
    """Entries of a stream were trimmed before they were read."""


@dataclass(frozen=True, slots=True)
class WriteStreams:
    """The streams that are read."""

    installation: int
    epoch: int
    partitions: int
    #: The backend whose writes they receive.
    backend: Backend = Backend.POSTGRES


@dataclass(frozen=True, slots=True)
class WriteStreamEntry:
    """One entry of a stream."""

    partition: int
    position: str
    content: Image | Tick


async def newest_grid(backend: Backend) -> WriteStreams | None:
    """Return the streams of a backend's newest grid epoch; None: there is none yet."""
    async with relay_pool().session() as session:
        (result,) = await session.run([(_NEWEST, (backend.encode(),))])
    if not result.rows:
        return None
    installation, epoch, partitions = (result.integer(0, column) for column in range(3))
    return WriteStreams(installation, epoch, partitions, backend)


def order(position: str) -> tuple[int, int]:
    """Return the sort key of a position in a stream."""
    milliseconds, _, number = position.partition("-")
    return int(milliseconds), int(number or 0)


class Track:
    """How far one stream has been read."""

    def __init__(self, position: str) -> None:
        self.position = position
        #: The incarnation in which the stream is complete; None: no tick has arrived yet.
        self.incarnation: bytes | None = None
        #: What the stream is complete up to, by its last tick.
        self._snapshot: TransactionSnapshot | None = None
        self._token = 0
        #: Entries in the stream at the last tick, and entries read since.
        self._count: int | None = None
        self._since = 0

    def advance(self, position: str, content: Image | Tick) -> None:
        """Process the next entry; raise `StreamGap` if entries before it are missing."""
        self.position = position
        self._since += 1
        if isinstance(content, Image):
            return
        if self._count is not None and content.count != self._count + self._since:
            raise StreamGap("the stream has been trimmed")
        self._count, self._since = content.count, 0
        if content.token < self._token:
            return  # From an older relay: it proves nothing.
        if self.incarnation not in (None, content.incarnation):
            raise StreamGap("the event layer or the database was restored or lost its data")
        self._token, self.incarnation = content.token, content.incarnation
        self._snapshot = content.snapshot

    def has_all_up_to(self, position: int) -> bool:
        """Return whether the stream has been read up to a position of the storage node's log. Of
        changes up to it, no older ones follow.
        """
        return self._snapshot is not None and self._snapshot.sees(position)


class WriteStreamReader:
    """The streams of a grid epoch. Every method may raise `RedisError`."""

    def __init__(self, wire: ValkeyWire, grid: WriteStreams) -> None:
        self._wire = wire
        self.grid = grid
        self._names = [
            stream(grid.installation, grid.epoch, number, grid.backend)
            for number in range(grid.partitions)
        ]

    def label(self, partition: int, incarnation: bytes) -> str:
        """Return the node's label for one incarnation of a stream."""
        grid = self.grid
        return f"{grid.installation}.{grid.epoch}.{partition}.{incarnation.hex()}"

    async def first(self, partition: int) -> str | None:
        """Return the position of the oldest entry."""
        return _position(
            await self._wire.call("XRANGE", self._names[partition], "-", "+", "COUNT", 1)
        )

    async def last(self, partition: int) -> str | None:
        """Return the position of the newest entry."""
        return _position(
            await self._wire.call("XREVRANGE", self._names[partition], "+", "-", "COUNT", 1)
        )

    async def read(self, tracks: list[Track]) -> list[WriteStreamEntry]:
        """Return the entries after the tracks' positions, waiting briefly for some to arrive."""
        positions = [track.position for track in tracks]
        reply = await self._wire.call(
            "XREAD", "COUNT", AT_ONCE, "BLOCK", WAIT_MS, "STREAMS", *self._names, *positions
        )
        entries_read: list[WriteStreamEntry] = []
        for name, rows in _pairs(reply):
            partition = self._names.index(_text(name))
            for position, fields in _pairs(rows):
                raw = _field(fields)
                entries_read.append(WriteStreamEntry(partition, _text(position), decode(raw)))
        return entries_read


def _position(rows: Reply) -> str | None:
    for position, _ in _pairs(rows):
        return _text(position)
    return None


def _pairs(reply: Reply) -> list[tuple[Reply, Reply]]:
    if reply is None:
        return []
    if not isinstance(reply, list):
        raise ResponseError("expected a list")
    pairs = []
    for pair in reply:
        if not isinstance(pair, list) or len(pair) != _ENTRY_PARTS:
            raise ResponseError("expected a pair")
        pairs.append((pair[0], pair[1]))
    return pairs


def _field(fields: Reply) -> bytes:
    """Return an entry's bytes; an entry of a batch has a second field after them."""
    if not isinstance(fields, list) or len(fields) < _ENTRY_PARTS:
        raise ResponseError("an entry has no fields")
    raw = fields[1]
    if not isinstance(raw, bytes):
        raise ResponseError("expected bytes")
    return raw


def _text(reply: Reply) -> str:
    if not isinstance(reply, bytes):
        raise ResponseError("expected text")
    return reply.decode()
