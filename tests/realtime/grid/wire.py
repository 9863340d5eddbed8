"""Registers a query with the grid directly, and reads the nodes' notifications, as a hub does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from struct import pack, unpack_from
from typing import cast
from uuid import UUID

import psycopg
import redis

from documents.outbox.database import relay_conninfo
from documents.outbox.entries import TransactionSnapshot
from documents.outbox.events import prefix
from foundation.valkey_wire import ValkeyWire
from realtime.events.layer import GridLayer, log

WRITE_PARTITIONS = 2
KINDS = {
    1: "start",
    2: "match",
    3: "done",
    4: "active",
    5: "too old",
    6: "failed",
    7: "tick",
    8: "rebase",
    9: "rebased",
    10: "window",
    11: "renew",
    14: "empty",
}


@dataclass(frozen=True)
class Notification:
    """The parts of a notification that tests use."""

    kind: str
    #: "filter:0" or "sort".
    source: str
    token: int
    count: int
    rest: bytes

    @property
    def version(self) -> int:
        """The version of the document that a match is about."""
        return int(unpack_from(">Q", self.rest, 41)[0])

    @property
    def activation(self) -> int:
        """The life of the query that an answer to a request is about."""
        return int(unpack_from(">Q", self.rest, 16)[0])

    def concerns(self, query: bytes) -> bool:
        return query in self.rest


def decode(raw: bytes) -> Notification:
    kind, is_sort, partition, token, count = unpack_from(">xBBHQQ", raw)
    source = "sort" if is_sort else f"filter:{partition}"
    return Notification(KINDS[kind], source, token, count, raw[21:])


def bson(document: dict[str, object]) -> bytes:
    """BSON of numbers and documents: enough for a filter."""
    out = b""
    for name, value in document.items():
        if isinstance(value, dict):
            out += b"\x03" + name.encode() + b"\0" + bson(value)
        else:
            assert isinstance(value, int)
            out += b"\x10" + name.encode() + b"\0" + pack("<i", value)
    return pack("<i", len(out) + 5) + out + b"\0"


@dataclass(frozen=True)
class Query:
    """An unsorted query of one collection."""

    hash: bytes
    tenant: UUID
    collection: UUID
    filter: dict[str, object] = field(default_factory=dict)
    sorted: bool = False

    def definition(self) -> bytes:
        return b"\1\3" + self._body()

    def request(self, positions: tuple[str, ...], snapshot: TransactionSnapshot) -> bytes:
        places = b"".join(pack(">QQ", *map(int, place.split("-"))) for place in positions)
        running = b"".join(pack(">Q", xid) for xid in snapshot.running)
        return (
            b"\1\1"
            + self._body()
            + pack(">BI", 1, len(positions))
            + places
            + pack(">QQI", snapshot.xmin, snapshot.xmax, len(snapshot.running))
            + running
            + pack(">I", 0)
        )

    def _body(self) -> bytes:
        conditions = bson(self.filter)
        limit = (1, 2) if self.sorted else (0, 0)
        return (
            self.hash
            + pack(">Q", 0)
            + self.tenant.bytes
            + self.collection.bytes
            + pack(">QBIBII", 0, self.sorted, 0, *limit, 1)
            + pack(">I", len(conditions))
            + conditions
            + pack(">I", 0)
        )


@dataclass(frozen=True)
class Moment:
    """The positions and the snapshot that a reader of a collection has noted."""

    positions: tuple[str, ...]
    snapshot: TransactionSnapshot


@asynccontextmanager
async def _layer(url: str) -> AsyncIterator[GridLayer]:
    wire = ValkeyWire(url, connect_timeout_s=10, answer_timeout_s=10)
    try:
        yield GridLayer(wire, prefix(1), 1)
    finally:
        await wire.aclose()


async def positions(url: str) -> tuple[str, ...]:
    """Return the current ends of the write streams."""
    async with _layer(url) as grid:
        return (await grid.ends(WRITE_PARTITIONS, 0)).writes


def snapshot() -> TransactionSnapshot:
    """Return the current snapshot of a reader of the collection."""
    with psycopg.connect(relay_conninfo()) as connection:
        row = connection.execute("SELECT pg_current_snapshot()::text").fetchone()
    assert row is not None
    return TransactionSnapshot.parse(row[0])


async def present(url: str) -> Moment:
    return Moment(await positions(url), snapshot())


async def register(url: str, query: Query, hub: str = "hub", read: Moment | None = None) -> int:
    """Register a query whose reader has found no rows, now or at an earlier moment."""
    read = read or await present(url)
    async with _layer(url) as grid:
        await grid.hub_alive(hub, 60_000)
        request = query.request(read.positions, read.snapshot)
        life = (await grid.ends(WRITE_PARTITIONS, 0)).life
        result = await grid.register(0, hub, life, (query.hash, query.definition(), request))
        return result.activation


class Log:
    """Reads the notification log from its current end."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._name = log(prefix(1), 1, 0)
        last = cast("list[tuple[bytes, object]]", client.xrevrange(self._name, count=1))
        self._after = last[0][0].decode() if last else "0-0"
        self.notifications: list[Notification] = []

    def read(self) -> list[Notification]:
        """Return everything since the beginning."""
        result = cast(
            "list[tuple[bytes, dict[bytes, bytes]]]",
            self._client.xrange(self._name, min=f"({self._after}"),
        )
        for entry_id, fields in result:
            self._after = entry_id.decode()
            self.notifications.append(decode(fields[b"e"]))
        return self.notifications

    def of(self, kind: str, query: bytes | None = None) -> list[Notification]:
        return [
            notifications
            for notifications in self.read()
            if notifications.kind == kind and (query is None or notifications.concerns(query))
        ]
