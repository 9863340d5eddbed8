"""The grid's streams and registry as their users see them: one library of Valkey functions.

App servers register queries, nodes hold leases and append to the notification log (they speak to
the functions natively), the supervisor lets queries end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from redis.exceptions import RedisError, ResponseError

from documents.outbox.events import prefix
from foundation.valkey_functions import ValkeyFunctions, integer, items, text
from foundation.valkey_wire import ValkeyWire

SOURCE = Path(__file__).with_name("grid.lua")
_LIBRARY = "rillbase_grid_1"

#: A query without subscribers is kept this long: longer than the log lasts, so that a client that
#: resumes finds either both or none.
QUERY_TTL_MS = 120_000
#: How long an app server is believed to be alive after it has said so.
HUB_LEASE_MS = 10_000
#: What a supervisor said of itself is believed for this long.
SUPERVISOR_NOTE_MS = 20_000
#: How many queries end in one call: the server serves no other client meanwhile.
EXPIRED_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Lease:
    """An answer to a node that asks for its partition."""

    held: bool
    #: The caller's token, or that of the partition's holder.
    token: int
    time_us: int


@dataclass(frozen=True, slots=True)
class NodeLease:
    """Who holds a partition, and what it says of itself."""

    holder: str
    token: int
    #: Valkey's time in ms at which the lease ends.
    until_ms: int
    report: bytes


@dataclass(frozen=True, slots=True)
class RegisteredQuery:
    """A query in the registry."""

    #: Rises with each time that the query comes to life; 0: it has ended, and was not renewed.
    activation: int
    #: Where its request stands in the request stream.
    request: str


@dataclass(frozen=True, slots=True)
class StreamEnds:
    """The ends of the streams: later entries have higher ids."""

    log: str
    writes: tuple[str, ...]
    time_us: int
    #: The life of the event layer in which they do.
    life: str


class GridLayer:
    """The grid of one installation and grid epoch. Every method may raise `RedisError`."""

    def __init__(self, wire: ValkeyWire, installation: int, epoch: int) -> None:
        self._functions = ValkeyFunctions(wire, _LIBRARY, SOURCE, prefix(installation))
        self._wire = wire
        self._prefix = prefix(installation)
        self._installation = installation
        self._epoch = epoch

    async def lease(self, node: str, holder: str, ttl_ms: int, report: bytes = b"") -> Lease:
        """Acquire or renew a partition's lease; with a time of 0, release it."""
        verdict, token, time_us = items(
            await self._functions.call("lease", self._epoch, node, holder, ttl_ms, report), 3
        )
        return Lease(text(verdict) == "ok", integer(token), integer(time_us))

    async def look(self, nodes: Sequence[str]) -> tuple[int, dict[str, NodeLease]]:
        """Return Valkey's time in microseconds and those nodes that ever had a holder."""
        reply = await self._functions.call("look", self._epoch, *nodes)
        time_us, *rows = items(reply, 1 + len(nodes))
        leases = dict[str, NodeLease]()
        for name, row in zip(nodes, rows, strict=True):
            holder, token, until, report = items(row, 4)
            if holder is not None:
                leases[name] = NodeLease(
                    text(holder), int(text(token)), int(text(until)), text(report).encode()
                )
        return integer(time_us), leases

    async def signs(self, holders: Sequence[str]) -> list[bytes | None]:
        """Return the last sign of life of each holder, if it gave one within a minute."""
        if not holders:
            return []
        keys = [f"{self._prefix}:{self._epoch}:alive:{holder}" for holder in holders]
        reply = items(await self._wire.call("MGET", *keys), len(holders))
        return [sign if isinstance(sign, bytes) else None for sign in reply]

    async def note_supervisor(self, status: str) -> None:
        """Say for a while how the supervisor of these nodes stands."""
        key = supervisor_key(self._installation, self._epoch)
        await self._wire.call("SET", key, status, "PX", SUPERVISOR_NOTE_MS)

    async def append(
        self, node: str, token: int, query_partition: int, notifications: Sequence[bytes]
    ) -> bool:
        """Append to the log; return whether the token still is the node's."""
        verdict, _ = items(
            await self._functions.call(
                "append", self._epoch, node, token, query_partition, *notifications
            ),
            2,
        )
        return text(verdict) == "ok"

    async def register(
        self, query_partition: int, hub: str, life: str, wanted: tuple[bytes, bytes, bytes]
    ) -> RegisteredQuery:
        """Hold a query and send its request to the nodes, with its activation number in both."""
        (registered,) = await self.register_all(query_partition, hub, life, [wanted])
        return registered

    async def register_all(
        self,
        query_partition: int,
        hub: str,
        life: str,
        wanted: Sequence[tuple[bytes, bytes, bytes]],
    ) -> list[RegisteredQuery]:
        """Do so with several: query, definition and request of each.

        Fails if the positions in the requests were noted in another life of the event layer. A
        request that says of itself that it is a renewal holds nothing and revives no query.
        """
        activations, requests = items(
            await self._functions.call(
                "register_all", self._epoch, query_partition, hub, life, *chain(*wanted)
            ),
            2,
        )
        return [
            RegisteredQuery(integer(activation), text(request))
            for activation, request in zip(
                items(activations, len(wanted)), items(requests, len(wanted)), strict=True
            )
        ]

    async def answer(self, query_partition: int, query: bytes, request: bytes) -> None:
        """Send an answer to the sort node, unless the query has ended."""
        await self._functions.call("answer", self._epoch, query_partition, query, request)

    async def unregister(self, query_partition: int, hub: str, *queries: bytes) -> None:
        """Release queries; one that no hub holds ends after its time to live."""
        await self._functions.call("unregister", self._epoch, query_partition, hub, *queries)

    async def hub_alive(self, hub: str, ttl_ms: int = HUB_LEASE_MS) -> bool:
        """Extend an app server's lease; return whether its queries are still held."""
        verdict, _ = items(await self._functions.call("hub_alive", hub, ttl_ms, QUERY_TTL_MS), 2)
        return text(verdict) == "ok"

    async def held(self, query_partition: int, hub: str) -> list[bytes]:
        """Return the queries that an app server holds."""
        queries = await self._functions.call("held", self._epoch, query_partition, hub)
        if not isinstance(queries, list):
            raise ResponseError("the function returned an unexpected type")
        return [query for query in queries if isinstance(query, bytes)]

    async def expire(self, query_partitions: int, ttl_ms: int = QUERY_TTL_MS) -> int:
        """End queries that no hub has held for the time; return how many were checked."""
        return integer(
            await self._functions.call(
                "expire", self._epoch, query_partitions, ttl_ms, EXPIRED_AT_ONCE
            )
        )

    async def ends(self, write_partitions: int, query_partition: int) -> StreamEnds:
        """Return where log and write streams end."""
        log, writes, time_us, life = items(
            await self._functions.call("ends", self._epoch, write_partitions, query_partition), 4
        )
        if not isinstance(writes, list):
            raise ResponseError("the function returned an unexpected type")
        places = tuple(text(end) for end in writes)
        return StreamEnds(text(log), places, integer(time_us), text(life))

    async def sweep(self) -> int:
        """Delete what is left of this grid epoch, which is retired; return how much that was."""
        cursor, swept = b"0", 0
        while True:
            command = ("SCAN", cursor, "MATCH", f"{self._prefix}:{self._epoch}:*", "COUNT", 1_000)
            after, keys = items(await self._wire.call(*command), 2)
            names = keys if isinstance(keys, list) else []
            present = [name for name in names if isinstance(name, bytes)]
            if present:
                await self._wire.call("UNLINK", *present)
                swept += len(present)
            cursor = text(after).encode()
            if cursor == b"0":
                return swept

    async def trim(self, query_partitions: int) -> None:
        """Drop what is old; works while the server has no memory left."""
        await self._functions.call("trim", self._epoch, query_partitions)


def query_partition(query: bytes, partitions: int) -> int:
    """Return which query partition a query belongs to."""
    return int.from_bytes(query[:8], "big") % partitions


def filter_node(query_partition: int, write_partition: int) -> str:
    """Return a filter node's name, as its lease has it."""
    return f"filter:{query_partition}:{write_partition}"


def sort_node(query_partition: int) -> str:
    return f"sort:{query_partition}"


def log(installation: int, epoch: int, query_partition: int) -> str:
    """Return the name of a notification log."""
    return f"{prefix(installation)}:{epoch}:log:{query_partition}"


def registry(installation: int, epoch: int, query_partition: int) -> str:
    """Return where the live queries of a query partition are."""
    return f"{prefix(installation)}:{epoch}:registry:{query_partition}"


def supervisor_key(installation: int, epoch: int) -> str:
    """Return the key under which a grid's supervisor says how it stands."""
    return f"{prefix(installation)}:{epoch}:supervisor"


def lease_key(installation: int, epoch: int, node: str) -> str:
    """Return where a node's lease is, and what it says of itself."""
    return f"{prefix(installation)}:{epoch}:lease:{node}"


__all__ = [
    "EXPIRED_AT_ONCE",
    "HUB_LEASE_MS",
    "QUERY_TTL_MS",
    "SOURCE",
    "GridLayer",
    "Lease",
    "NodeLease",
    "RedisError",
    "RegisteredQuery",
    "StreamEnds",
    "filter_node",
    "lease_key",
    "log",
    "query_partition",
    "registry",
    "sort_node",
]
