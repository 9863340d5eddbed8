"""Tells the nodes to watch a query: positions, then rows and snapshot, then the registration.

The order closes the gaps: what the write streams receive after the positions is replayed by the
nodes, what the snapshot sees is in the rows, and no write is in neither.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from uuid import UUID

from documents.outbox.entries import Snapshot
from documents.store import facts
from documents.store.facts import CollectionFacts
from documents.store.large_results import LARGE_BYTES, ResultDoesNotFit, in_turn
from documents.store.lookups import Side
from documents.store.queries import native
from foundation.errors import ResultTooLarge
from foundation.event_loop_budget import EventLoopBudget
from realtime.events.layer import GridLayer, StreamEnds, query_partition
from realtime.grid.layout import GridEpoch
from realtime.registration.initial_rows import InitialRead, InitialRows, Row, read_all
from rillbase_native import LiveQuery, Sort

#: Rows that a sort node keeps beyond a window: half of the window, within bounds.
LEAST_SLACK, MOST_SLACK = 16, 1_000


@dataclass(frozen=True, slots=True)
class CollectionReference:
    """Where a query reads: a collection by its name, still the one that it was made for."""

    tenant_id: UUID
    collection: str


@dataclass(frozen=True, slots=True)
class RegistrationResult:
    """What a hub has to know of a registration."""

    activation: int
    #: Where the request stands in the request stream: nodes name it in their answers.
    request: str
    log_end: str
    snapshot: Snapshot
    #: Of a query that groups, the rows that stand for groups.
    rows: list[Row]
    #: How many documents are left out, since they cannot be evaluated.
    unevaluated: int


class OtherRules(Exception):
    """The collection, or its access rules, are others than those that the query was made with."""


def slack_for(offset: int, limit: int | None) -> int:
    """Return how many rows a new window has behind it."""
    return min(max((offset + (limit or 0)) // 2, LEAST_SLACK), MOST_SLACK)


async def register(
    layer: GridLayer,
    grid: GridEpoch,
    hub: str,
    query: LiveQuery,
    source: CollectionReference,
    *,
    renewal: bool,
) -> RegistrationResult:
    """Read a query's rows and have it watched on behalf of a hub."""
    (registration,) = await register_all(layer, grid, hub, [query], source, renewal=renewal)
    return registration


async def register_all(
    layer: GridLayer,
    grid: GridEpoch,
    hub: str,
    queries: Sequence[LiveQuery],
    source: CollectionReference,
    *,
    renewal: bool,
) -> list[RegistrationResult]:
    """Do so with several of one collection and one query partition: one snapshot, one call.

    Those whose rows would be too many at once are left to a further call: the answer is shorter.
    """
    register_now = partial(_register_all, layer, grid, hub, queries, source, renewal)
    try:
        return await in_turn(source.tenant_id, register_now)
    except ResultDoesNotFit:
        raise ResultTooLarge(f"The rows are larger than {LARGE_BYTES} bytes.") from None


async def _register_all(
    layer: GridLayer,
    grid: GridEpoch,
    hub: str,
    queries: Sequence[LiveQuery],
    source: CollectionReference,
    renewal: bool,  # noqa: FBT001 -- `partial` gives it by its place
    max_held_bytes: int,
) -> list[RegistrationResult]:
    partition = query_partition(queries[0].hash, grid.query_partitions)
    ends = await layer.ends(grid.write_partitions, partition)
    read = await _rows(queries, source, max_held_bytes)
    budget, requests = EventLoopBudget(), []
    for query, rows in zip(queries, read, strict=False):
        request = _request(query, ends, rows, renewal=renewal)
        requests.append((query.hash, query.definition(), request))
        await budget.yield_if_spent()
    registered = await layer.register_all(partition, hub, ends.life, requests)
    return [
        RegistrationResult(
            given.activation,
            given.request,
            ends.log,
            rows.snapshot,
            _shown(query, rows),
            rows.unevaluated,
        )
        for query, given, rows in zip(queries, registered, read, strict=False)
    ]


def _shown(query: LiveQuery, read: InitialRows) -> list[Row]:
    """Return what is shown of the rows that were read: groups of them, or them with others."""
    if not (query.grouped or query.looks_up):
        return read.rows
    return native(lambda: query.shown(read.rows, read.foreign))


async def _rows(
    queries: Sequence[LiveQuery], source: CollectionReference, max_held_bytes: int
) -> list[InitialRows]:
    # The rule is part of a query's filter already.
    budget, wanted = EventLoopBudget(), []
    for query in queries:
        extent = replace(await _extent(query, source), readable=query.readable())
        wanted.append((query.filter(), extent))
        await budget.yield_if_spent()
    read = await read_all(source.tenant_id, source.collection, wanted, max_held_bytes)
    for query, rows in zip(queries, read, strict=False):
        compare(rows.collection, query.collection, query.rules_version)
    return read


def compare(current: CollectionFacts, collection: bytes, rules_version: int) -> None:
    """Raise unless it is this collection, under these rules if any matter."""
    if current.raw != collection or (rules_version and current.rules_version != rules_version):
        raise OtherRules


async def _extent(query: LiveQuery, source: CollectionReference) -> InitialRead:
    if (group := query.group()) is not None:
        # Sort and window are those of the groups.
        return InitialRead(Sort.parse(None), None, has_window=False, group=group)
    first = None if query.limit is None else query.offset + query.limit + query.slack
    if not query.looks_up:
        return InitialRead(query.sort(), first, query.sorted)
    has_window = first is not None or query.offset > 0
    return InitialRead(
        query.sort(), first, has_window, looks_up=query, sides=await sides_of_query(query, source)
    )


async def sides_of_query(query: LiveQuery, source: CollectionReference) -> list[Side]:
    """Return the collections that are looked up, still those that the query was made for."""
    sides = []
    for name, (collection, rules_version, rule) in zip(
        query.side_names(), query.sides(), strict=True
    ):
        current = await facts.find(source.tenant_id, name)
        if current.raw != collection or current.rules_version != rules_version:
            current = await facts.find(source.tenant_id, name, fresh=True)
        compare(current, collection, rules_version)
        sides.append(Side(current, rule if rules_version else None))
    return sides


def _request(query: LiveQuery, ends: StreamEnds, rows: InitialRows, *, renewal: bool) -> bytes:
    return query.request(
        list(ends.writes),
        as_tuple(rows.snapshot),
        rows.rows,
        complete=rows.complete,
        renewal=renewal,
        foreign=rows.foreign,
    )


def as_tuple(snapshot: Snapshot) -> tuple[int, int, list[int]]:
    """Return a snapshot as the native code takes it."""
    return snapshot.xmin, snapshot.xmax, list(snapshot.running)
