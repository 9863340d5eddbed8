"""Documents that others refer to: read in the snapshot of the query that shows them.

Whoever asks must be allowed to read them, too: what the `read` rule of their collection keeps from
a caller is absent, as is what does not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from documents.store import facts
from documents.store.access import NOTHING, access_of
from documents.store.facts import CollectionFacts
from documents.store.reads import BY_KEY, CHECK, StoredDocument, is_current, row
from foundation.errors import QueryTooExpensive
from foundation.postgres import Result, Runs, Statement
from foundation.postgres.arrays import byteas
from foundation.postgres.session import Oid
from rillbase_native import Filter, Lookups
from tenants.principals import Principal

#: What one page looks up, each document once.
MAX_LOOKED_UP = 10_000
MAX_BYTES = 64 * 1024 * 1024
#: What a collection may have of which all is read. `_SIZE` looks at one document more.
SMALL, SMALL_BYTES = 1_000, 1024 * 1024
#: Documents of one statement.
AT_ONCE = 1_000
VERSIONS_AT_ONCE = 50
_SIZE = Statement(
    "SELECT count(*), coalesce(sum(octet_length(body)), 0)::bigint FROM (SELECT body "
    "FROM documents_document WHERE collection_id = $1 AND body IS NOT NULL LIMIT 1001) AS first",
    (Oid.UUID,),
)
_ALL = Statement(
    "SELECT key, version, created_at, updated_at, body FROM documents_document "
    "WHERE collection_id = $1 AND body IS NOT NULL",
    (Oid.UUID,),
)
_VERSIONS = Statement(
    "SELECT key, version, xmin::text::bigint, body FROM documents_document "
    "WHERE collection_id = $1 AND key = ANY($2)",
    (Oid.UUID, Oid.BYTEA_ARRAY),
)
#: The lowest transaction id that is not PostgreSQL's own, and how many a row can tell apart.
_FIRST_XID, _XIDS = 3, 1 << 32


@dataclass(frozen=True, slots=True)
class Side:
    """A collection that is looked up, as one caller may see it."""

    collection: CollectionFacts
    #: None: no rule binds the caller.
    rule: Filter | None


@dataclass(frozen=True, slots=True)
class Version:
    """A document as a snapshot has it, deletions included."""

    key: bytes
    #: 0: it was never there, or that was forgotten.
    version: int
    #: The transaction that wrote it; 0: one that nobody remembers.
    xid: int
    #: None: it does not exist, or may not be seen.
    body: bytes | None


async def sides_of(
    tenant_id: UUID, lookups: Lookups | None, principal: Principal | None, *, fresh: bool = False
) -> list[Side]:
    """Return the collections that are looked up, or raise why one of them cannot be."""
    sides = []
    for name in lookups.collections if lookups is not None else ():
        if principal is not None:
            principal.require_collection(name)
        collection = await facts.find(tenant_id, name, fresh=fresh)
        access = None if principal is None else access_of(collection, principal)
        rule = None if access is None else access.filters.get("read", NOTHING)
        sides.append(Side(collection, rule))
    return sides


async def read_sides(
    session: Runs, sides: Sequence[Side], keys: Sequence[Sequence[bytes]], now_ms: int
) -> list[list[StoredDocument]] | None:
    """Return the documents with these keys that may be seen, of each side.

    None: a collection is not in the snapshot as it was known.
    """
    checks = await session.run([(CHECK, (side.collection.id.bytes,)) for side in sides])
    if not all(map(is_current, checks, (side.collection for side in sides))):
        return None
    if sum(map(len, keys)) > MAX_LOOKED_UP:
        raise QueryTooExpensive(f"The query looks up more than {MAX_LOOKED_UP} documents.")
    left_bytes = MAX_BYTES
    found: list[list[StoredDocument]] = []
    for side, wanted in zip(sides, keys, strict=True):
        found.append([])
        for begin in range(0, len(wanted), AT_ONCE):
            some = byteas(wanted[begin : begin + AT_ONCE])
            (result,) = await session.run([(BY_KEY, (side.collection.id.bytes, some))])
            documents = [row(result, number) for number in range(result.rows)]
            left_bytes -= sum(len(one.body) for one in documents)
            if left_bytes < 0:
                raise QueryTooExpensive("What the query looks up is too large.")
            found[-1] += [one for one in documents if _may_see(side, one.body, now_ms)]
    return found


async def read_versions(
    session: Runs,
    sides: Sequence[Side],
    keys: Sequence[Sequence[bytes]],
    xmax: int,
    most_bytes: int,
    now_ms: int,
) -> list[list[Version]] | None:
    """Return which version the snapshot below `xmax` has of documents, of each side.

    Once there are so many bytes, the rest is left out. None: a collection is not as it was known.
    """
    checks = await session.run([(CHECK, (side.collection.id.bytes,)) for side in sides])
    if not all(map(is_current, checks, (side.collection for side in sides))):
        return None
    found: list[list[Version]] = []
    for side, wanted in zip(sides, keys, strict=True):
        found.append([])
        for begin in range(0, len(wanted), VERSIONS_AT_ONCE):
            some = wanted[begin : begin + VERSIONS_AT_ONCE]
            if most_bytes <= 0:
                break
            (result,) = await session.run([(_VERSIONS, (side.collection.id.bytes, byteas(some)))])
            rows = {result.bytes(row, 0): row for row in range(result.rows)}
            read = [_version(side, key, result, rows.get(key), xmax, now_ms) for key in some]
            most_bytes -= sum(len(one.key) + len(one.body or b"") for one in read)
            found[-1] += read
    return found


def _version(
    side: Side, key: bytes, result: Result, row: int | None, xmax: int, now_ms: int
) -> Version:
    if row is None:
        return Version(key, 0, 0, None)
    body = result.raw(row, 3)
    seen = body is not None and _may_see(side, body, now_ms)
    xid = whole_xid(result.integer(row, 2), xmax)
    return Version(key, result.integer(row, 1), xid, body if seen else None)


def whole_xid(xid: int, xmax: int) -> int:
    """Return the transaction below `xmax` of which a row has the lower half; 0: too long ago."""
    whole = xmax - xmax % _XIDS + xid
    if whole >= xmax:
        whole -= _XIDS
    return whole if xid >= _FIRST_XID and whole > 0 else 0


async def read_small(session: Runs, side: Side, now_ms: int) -> list[StoredDocument] | None:
    """Return all documents of a collection that may be seen; None: it is not small."""
    (size,) = await session.run([(_SIZE, (side.collection.id.bytes,))])
    if size.integer(0, 0) > SMALL or size.integer(0, 1) > SMALL_BYTES:
        return None
    (result,) = await session.run([(_ALL, (side.collection.id.bytes,))])
    documents = (row(result, number) for number in range(result.rows))
    return [one for one in documents if _may_see(side, one.body, now_ms)]


def _may_see(side: Side, body: bytes, now_ms: int) -> bool:
    return side.rule is None or side.rule.matches(body, now_ms)
