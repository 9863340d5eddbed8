"""A collection's definition, at most a second old and compiled once per version.

Readers and writers check `write_version` again in the statement batch that reads or writes, so an
unknown change makes them start over.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from uuid import UUID

from documents.backend import Backend
from documents.index_fields import IndexFields, parse_index_fields
from documents.store.database import pool, scope
from documents.technique import DeclaredTechnique
from foundation.environment import environment
from foundation.errors import MixedBackends, NotFound, Unavailable
from foundation.postgres import Statement, StatementResult
from foundation.postgres.session import Oid
from foundation.ttl_cache import TTL_S, TtlCache
from rillbase_native import Definition, Rule, Value

MAX_COLLECTIONS = 10_000
#: Longer than any server uses facts that it has read.
READERS_FOLLOW_S = 2 * TTL_S
#: How long calls with an idempotency key are recorded.
CLAIMS_LAST_S = 24 * 3600
ACTIONS = ("read", "create", "update", "delete")

_FIND = Statement(
    "SELECT id, write_version, rules_version, schema, access_rules, source_id, version_floor, "
    "backend, move_stage, "
    "(extract(epoch FROM transaction_timestamp() - moved_at) * 1000)::bigint "
    "FROM documents_collection "
    "WHERE tenant_id = $1 AND name = $2 AND state = 'active'",
    (Oid.UUID, Oid.TEXT),
)
_INDEXES = Statement(
    "SELECT i.number, i.name, i.fields::text, i.\"unique\", i.state = 'ready', "
    "coalesce(nullif(i.chosen_technique, ''), i.technique) "
    "FROM documents_index i JOIN documents_collection c ON c.id = i.collection_id "
    "WHERE c.tenant_id = $1 AND c.name = $2 AND c.state = 'active' "
    "AND i.state IN ('building', 'ready') ORDER BY i.number",
    (Oid.UUID, Oid.TEXT),
)


class ConcurrentDefinitionChange(Unavailable):
    """Every attempt to use a collection met a concurrent change of its definition."""


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """A declared index. Only a ready one may answer queries."""

    number: int
    name: str
    fields: IndexFields
    unique: bool
    ready: bool
    #: How its entries are stored.
    technique: DeclaredTechnique


@dataclass(frozen=True, slots=True)
class CollectionFacts:
    """A collection as reads and writes need it."""

    id: UUID
    #: The id's bytes, which are cheaper to hash and to compare.
    raw: bytes
    tenant_id: UUID
    name: str
    write_version: int
    rules_version: int
    #: May have been raised since, without a new `write_version`.
    version_floor: int
    definition: Definition
    rules: dict[str, Rule]
    indexes: tuple[IndexFacts, ...]
    #: The only source that may write its documents; None: no such restriction.
    source_id: UUID | None
    #: Its JSON Schema as Extended JSON; None: no schema.
    schema: bytes | None
    #: Where its documents are stored.
    backend: Backend
    #: Whether it moves to the other backend: its writers record what they change.
    is_moving: bool = False
    #: Whether it is about to have moved: it accepts no writes.
    is_sealed: bool = False
    #: Whether calls with an idempotency key may be recorded in the backend that it has left.
    has_moved: bool = False
    #: From when on it is written, as `time.monotonic`: until then, other servers may still read the
    #: storage node, which it has left.
    written_from_s: float = 0.0

    @property
    def is_native(self) -> bool:
        """Whether its documents are in the storage node."""
        return self.backend == Backend.NATIVE

    @property
    def is_in_node(self) -> bool:
        """Whether the storage node has its definition."""
        return self.is_native or self.is_moving


async def find(tenant_id: UUID, name: str, *, fresh: bool = False) -> CollectionFacts:
    """Return a tenant's collection, or raise `NotFound`. `fresh`: bypass the cache."""
    return await _cache.get((tenant_id, name), fresh=fresh)


async def until_readers_follow(collections: Iterable[CollectionFacts]) -> None:
    """Wait until no server reads the storage node, which collections have left."""
    now_s = time.monotonic()
    waiting_s = max((one.written_from_s - now_s for one in collections), default=0.0)
    if waiting_s > 0:
        await asyncio.sleep(waiting_s)


def require_one_backend(collections: Iterable[CollectionFacts]) -> None:
    """Raise if collections are stored in different backends."""
    if len({collection.backend for collection in collections}) > 1:
        raise MixedBackends(
            "A transaction or a lookup can only use collections of the same backend."
        )


async def _load(key: tuple[UUID, str], known: CollectionFacts | None) -> CollectionFacts:
    tenant_id, name = key
    parameters = (tenant_id.bytes, name.encode())
    async with pool().session() as session:
        _, row, indexes = await session.run(
            [scope(tenant_id), (_FIND, parameters), (_INDEXES, parameters)]
        )
    if not row.rows:
        raise NotFound(f"The collection {name!r} does not exist.")
    identity, write_version = row.uuid(0, 0), row.integer(0, 1)
    version_floor = row.integer(0, 6)
    if known is not None and (known.id, known.write_version) == (identity, write_version):
        if known.version_floor == version_floor:
            return known
        return replace(known, version_floor=version_floor)
    schema, backend = row.raw(0, 3), Backend(row.text(0, 7))
    moved_s_ago = None if row.raw(0, 9) is None else row.integer(0, 9) / 1000
    written_from_s = 0.0
    # Reads in PostgreSQL notice a new definition by themselves.
    if moved_s_ago is not None and backend == Backend.POSTGRES:
        written_from_s = time.monotonic() + READERS_FOLLOW_S - moved_s_ago
    facts = tuple(_index(indexes, number) for number in range(indexes.rows))
    return CollectionFacts(
        id=identity,
        raw=identity.bytes,
        tenant_id=tenant_id,
        name=name,
        write_version=write_version,
        rules_version=row.integer(0, 2),
        version_floor=version_floor,
        definition=Definition(
            None if schema is None else Value.parse(schema),
            [(index.number, list(index.fields), index.unique) for index in facts],
            max_array_elements=environment().rillbase_max_array_elements,
            max_values=environment().rillbase_max_document_values,
        ),
        rules=_rules(row.bytes(0, 4)),
        indexes=facts,
        source_id=None if row.raw(0, 5) is None else row.uuid(0, 5),
        schema=schema,
        backend=backend,
        is_moving=row.text(0, 8) != "",
        is_sealed=row.text(0, 8) == "sealed",
        has_moved=moved_s_ago is not None and moved_s_ago < CLAIMS_LAST_S,
        written_from_s=written_from_s,
    )


_cache = TtlCache(_load, MAX_COLLECTIONS)


def _index(rows: StatementResult, number: int) -> IndexFacts:
    fields = json.loads(rows.text(number, 2))
    return IndexFacts(
        number=rows.integer(number, 0),
        name=rows.text(number, 1),
        fields=parse_index_fields(fields),
        unique=rows.boolean(number, 3),
        ready=rows.boolean(number, 4),
        technique=DeclaredTechnique(rows.text(number, 5)).initial,
    )


def _rules(text: bytes) -> dict[str, Rule]:
    declared = Value.parse(text)
    rules = {}
    for action in ACTIONS:
        rule = declared.get(action)
        if rule is not None and not rule.is_null:
            rules[action] = Rule.parse(rule, pointer=f"/access_rules/{action}")
    return rules
