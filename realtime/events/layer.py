"""Access to the grid's streams and registry, through one library of Valkey functions.

App servers register queries, nodes hold leases and append to the notification log (they speak to
the functions natively), the supervisor ends queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from redis.exceptions import RedisError, ResponseError

from foundation.valkey_functions import (
    ValkeyFunctions,
    divide_into_calls,
    integer,
    items,
    text,
)
from foundation.valkey_wire import ValkeyWire

SOURCE = Path(__file__).with_name("grid.lua")
_LIBRARY = "rillbase_grid_2"

#: How long a query without subscribers is kept: longer than the log is retained, so that a client
#: that resumes finds either both or neither.
QUERY_TTL_MS = 120_000
#: How long an app server counts as alive after its last report.
HUB_LEASE_MS = 10_000
#: How long the report of a supervisor is valid.
SUPERVISOR_NOTE_MS = 20_000
#: Maximum number of queries that one call ends: it blocks the server meanwhile.
EXPIRED_AT_ONCE = 100
#: Maximum numbers of queries that one call registers, releases and returns.
REGISTERED_AT_ONCE, RELEASED_AT_ONCE, QUERIES_AT_ONCE = 100, 100, 500


@dataclass(frozen=True, slots=True)
class Lease:
    """The reply to a node that requests its partition."""

    held: bool
    #: The caller's token, or that of the partition's holder.
    token: int
    time_us: int


@dataclass(frozen=True, slots=True)
class NodeLease:
    """The holder of a partition, and its report."""

    holder: str
    token: int
    #: Valkey's time in ms at which the lease ends.
    until_ms: int
    report: bytes


@dataclass(frozen=True, slots=True)
class RegisteredQuery:
    """A query in the registry."""

    #: Increases each time the query is activated; 0: it has ended and was not renewed.
    activation: int
    #: The position of its request in the request stream.
    request: str


@dataclass(frozen=True, slots=True)
class StreamEnds:
    """The ends of the streams: later entries have higher ids."""

    log: str
    writes: tuple[str, ...]
    time_us: int
    #: The incarnation of the event layer to which they belong.
    life: str


class GridLayer:
    """One grid epoch, beside the write streams whose names begin with a prefix. Every method may
    raise `RedisError`.
    """

    def __init__(self, wire: ValkeyWire, prefix: str, epoch: int) -> None:
        self._functions = ValkeyFunctions(wire, _LIBRARY, SOURCE, prefix)
        self._wire = wire
        self._prefix = prefix
        self._epoch = epoch

    async def lease(self, node: str, holder: str, ttl_ms: int, report: bytes = b"") -> Lease:
        """Acquire or renew a partition's lease; with a time of 0, release it."""
        verdict, token, time_us = items(
            await self._functions.call("lease", self._epoch, node, holder, ttl_ms, report), 3
        )
        return Lease(text(verdict) == "ok", integer(token), integer(time_us))

    async def leases(self, nodes: Sequence[str]) -> tuple[int, dict[str, NodeLease]]:
        """Return Valkey's time in microseconds and the nodes that ever had a holder."""
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

    async def heartbeats(self, holders: Sequence[str]) -> list[bytes | None]:
        """Return the last report of each holder, if it is at most a minute old."""
        if not holders:
            return []
        keys = [f"{self._prefix}:{self._epoch}:alive:{holder}" for holder in holders]
        reply = items(await self._wire.call("MGET", *keys), len(holders))
        return [sign if isinstance(sign, bytes) else None for sign in reply]

    async def note_supervisor(self, status: str) -> None:
        """Publish the state of the supervisor of these nodes for a while."""
        key = supervisor_key(self._prefix, self._epoch)
        await self._wire.call("SET", key, status, "PX", SUPERVISOR_NOTE_MS)

    async def append(
        self, node: str, token: int, query_partition: int, notifications: Sequence[bytes]
    ) -> bool:
        """Append to the log; return whether the token is still the node's."""
        verdict, _ = items(
            await self._functions.call(
                "append", self._epoch, node, token, query_partition, *notifications
            ),
            2,
        )
        return text(verdict) == "ok"

    async def register(
        self, query_partition: int, hub: str, life: str, query: tuple[bytes, bytes, bytes]
    ) -> RegisteredQuery:
        """Register a query for a hub, and send its request to the nodes."""
        (registered,) = await self.register_all(query_partition, hub, life, [query])
        return registered

    async def register_all(
        self,
        query_partition: int,
        hub: str,
        life: str,
        queries: Sequence[tuple[bytes, bytes, bytes]],
    ) -> list[RegisteredQuery]:
        """Do the same for several: query, definition and request of each. Fails if the positions in
        the requests are from another incarnation of the event layer; earlier ones of many may have
        been registered then. A request that is marked as a renewal holds nothing and revives no
        query.
        """
        registered = list[RegisteredQuery]()
        for call in divide_into_calls(
            queries, lambda query: (1, sum(map(len, query))), REGISTERED_AT_ONCE
        ):
            activations, requests = items(
                await self._functions.call(
                    "register_all", self._epoch, query_partition, hub, life, *chain(*call)
                ),
                2,
            )
            registered += [
                RegisteredQuery(integer(activation), text(request))
                for activation, request in zip(
                    items(activations, len(call)), items(requests, len(call)), strict=True
                )
            ]
        return registered

    async def answer(self, query_partition: int, query: bytes, request: bytes) -> None:
        """Send an answer to the sort node, unless the query has ended."""
        await self._functions.call("answer", self._epoch, query_partition, query, request)

    async def unregister(self, query_partition: int, hub: str, *queries: bytes) -> None:
        """Release queries; one that no hub holds ends after its time to live."""
        for begin in range(0, len(queries), RELEASED_AT_ONCE):
            part = queries[begin : begin + RELEASED_AT_ONCE]
            await self._functions.call("unregister", self._epoch, query_partition, hub, *part)

    async def hub_alive(self, hub: str, ttl_ms: int = HUB_LEASE_MS) -> bool:
        """Extend an app server's lease; return whether its queries are still held."""
        verdict, _ = items(await self._functions.call("hub_alive", hub, ttl_ms, QUERY_TTL_MS), 2)
        return text(verdict) == "ok"

    async def registered_queries(self, query_partition: int, hub: str) -> list[bytes]:
        """Return the queries that an app server holds, some possibly twice. They are read in parts,
        and those that are being registered may be missing.
        """
        key = f"{self._prefix}:{self._epoch}:held:{query_partition}:{hub}"
        cursor, registered = b"0", list[bytes]()
        while True:
            command = ("SSCAN", key, cursor, "COUNT", QUERIES_AT_ONCE)
            after, queries = items(await self._wire.call(*command), 2)
            if not isinstance(queries, list):
                raise ResponseError("the server returned an unexpected type")
            registered += [query for query in queries if isinstance(query, bytes)]
            cursor = text(after).encode()
            if cursor == b"0":
                return registered

    async def expire(self, query_partitions: int, ttl_ms: int = QUERY_TTL_MS) -> int:
        """End queries whose time to live is over; return how many were checked."""
        return integer(
            await self._functions.call(
                "expire", self._epoch, query_partitions, ttl_ms, EXPIRED_AT_ONCE
            )
        )

    async def ends(self, write_partitions: int, query_partition: int) -> StreamEnds:
        """Return the ends of the log and the write streams."""
        log, writes, time_us, life = items(
            await self._functions.call("ends", self._epoch, write_partitions, query_partition), 4
        )
        if not isinstance(writes, list):
            raise ResponseError("the function returned an unexpected type")
        write_ends = tuple(text(end) for end in writes)
        return StreamEnds(text(log), write_ends, integer(time_us), text(life))

    async def sweep(self) -> int:
        """Delete the remaining keys of this retired grid epoch; return how many there were."""
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
        """Drop old entries; works even if the server has run out of memory."""
        await self._functions.call("trim", self._epoch, query_partitions)


def filter_node(query_partition: int, write_partition: int) -> str:
    """Return a filter node's name, as in its lease."""
    return f"filter:{query_partition}:{write_partition}"


def sort_node(query_partition: int) -> str:
    return f"sort:{query_partition}"


def log(prefix: str, epoch: int, query_partition: int) -> str:
    """Return the name of a notification log."""
    return f"{prefix}:{epoch}:log:{query_partition}"


def registry(prefix: str, epoch: int, query_partition: int) -> str:
    """Return the key of the live queries of a query partition."""
    return f"{prefix}:{epoch}:registry:{query_partition}"


def supervisor_key(prefix: str, epoch: int) -> str:
    """Return the key under which a grid's supervisor publishes its state."""
    return f"{prefix}:{epoch}:supervisor"


def lease_key(prefix: str, epoch: int, node: str) -> str:
    """Return the key of a node's lease and report."""
    return f"{prefix}:{epoch}:lease:{node}"


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
    "registry",
    "sort_node",
]
