"""Referenced documents, read in the snapshot of the query that includes them. The caller must be
allowed to read them as well: documents that the `read` rule of their collection hides are absent,
like those that do not exist.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from documents.store import bodies, facts
from documents.store.access import NOTHING, access_of
from documents.store.facts import CollectionFacts
from documents.store.large_results import ReadAllowance
from documents.store.reads import CHECK, is_current, row
from documents.store.snapshot import DocumentSnapshot
from documents.store.stored_document import StoredDocument
from foundation.errors import QueryTooExpensive
from foundation.postgres import Statement, StatementRunner
from foundation.postgres.arrays import byteas
from foundation.postgres.session import Oid
from rillbase_native import Filter, Lookups
from tenants.principals import Principal

#: Maximum number of documents that one page looks up, each counted once.
MAX_LOOKED_UP = 10_000
MAX_BYTES = 64 * 1024 * 1024
#: Maximum size of a collection that is read completely. `_SIZE` examines one document more.
SMALL, SMALL_BYTES = 1_000, 1024 * 1024
#: Documents per statement.
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
    f"SELECT key, version, xmin::text::bigint, {bodies.carried('body', '$3')} "  # noqa: S608
    "FROM documents_document WHERE collection_id = $1 AND key = ANY($2)",
    (Oid.UUID, Oid.BYTEA_ARRAY, Oid.INT4),
)
#: Key, version, the transaction id in the row, and body.
_VersionRow = tuple[bytes, int, int, bytes | None]
#: The lowest regular transaction id, and the number of ids that a row can distinguish.
_FIRST_XID, _XIDS = 3, 1 << 32


@dataclass(frozen=True, slots=True)
class LookupCollection:
    """A collection of a lookup, with the access of one caller."""

    collection: CollectionFacts
    #: None: access rules do not apply to the caller.
    rule: Filter | None


@dataclass(frozen=True, slots=True)
class DocumentVersion:
    """A document as a snapshot has it, deletions included."""

    key: bytes
    #: 0 if it never existed, or its tombstone was removed.
    version: int
    #: The transaction that wrote it; 0: no longer known.
    xid: int
    #: None: it does not exist, or the caller may not read it.
    body: bytes | None


async def sides_of(
    tenant_id: UUID, lookups: Lookups | None, principal: Principal | None, *, fresh: bool = False
) -> list[LookupCollection]:
    """Return the collections of the lookups, or raise if one of them cannot be read."""
    sides = []
    for name in lookups.collections if lookups is not None else ():
        if principal is not None:
            principal.require_collection(name)
        collection = await facts.find(tenant_id, name, fresh=fresh)
        access = None if principal is None else access_of(collection, principal)
        rule = None if access is None else access.filters.get("read", NOTHING)
        sides.append(LookupCollection(collection, rule))
    return sides


async def read_sides(
    snapshot: DocumentSnapshot,
    sides: Sequence[LookupCollection],
    keys: Sequence[Sequence[bytes]],
    now_ms: int,
    allowance: ReadAllowance,
) -> list[list[StoredDocument]] | None:
    """Return the readable documents with these keys, for each lookup. None: a collection has
    changed in the snapshot.
    """
    if not await snapshot.are_current([side.collection for side in sides]):
        return None
    if sum(map(len, keys)) > MAX_LOOKED_UP:
        raise QueryTooExpensive(f"The query looks up more than {MAX_LOOKED_UP} documents.")
    earlier_bytes = 0
    documents_by_side: list[list[StoredDocument]] = []
    for side, side_keys in zip(sides, keys, strict=True):
        documents_by_side.append([])
        for begin in range(0, len(side_keys), AT_ONCE):
            budget = _LookupBudget(allowance, earlier_bytes)
            some = side_keys[begin : begin + AT_ONCE]
            async for documents in snapshot.documents(side.collection, some, budget.reserve):
                documents_by_side[-1] += [
                    one for one in documents if _may_see(side, one.body, now_ms)
                ]
            earlier_bytes = budget.bytes
    return documents_by_side


class _LookupBudget:
    """The bytes of the documents that are looked up."""

    def __init__(self, allowance: ReadAllowance, earlier_bytes: int) -> None:
        self._allowance = allowance
        self._earlier_bytes = earlier_bytes
        self.bytes = earlier_bytes

    def reserve(self, part_bytes: int) -> None:
        """Raise if this many bytes are too many in addition to the earlier ones."""
        self.bytes = self._earlier_bytes + part_bytes
        if self.bytes > MAX_BYTES:
            raise QueryTooExpensive("The documents that the query looks up are too large.")
        self._allowance.check(self.bytes)


async def read_versions(
    session: StatementRunner,
    sides: Sequence[LookupCollection],
    keys: Sequence[Sequence[bytes]],
    xmax: int,
    most_bytes: int,
    now_ms: int,
) -> list[list[DocumentVersion]] | None:
    """Return the versions of documents in the snapshot below `xmax`, for each lookup. Beyond a
    number of bytes, the rest is omitted. None: a collection has changed.
    """
    checks = await session.run([(CHECK, (side.collection.id.bytes,)) for side in sides])
    if not all(map(is_current, checks, (side.collection for side in sides))):
        return None
    versions: list[list[DocumentVersion]] = []
    for side, side_keys in zip(sides, keys, strict=True):
        versions.append([])
        for begin in range(0, len(side_keys), VERSIONS_AT_ONCE):
            some = side_keys[begin : begin + VERSIONS_AT_ONCE]
            if most_bytes <= 0:
                break
            async for rows in _version_rows(session, side, some):
                read = [_version(side, row, xmax, now_ms) for row in rows]
                most_bytes -= sum(len(one.key) + len(one.body or b"") for one in read)
                versions[-1] += read
                if most_bytes <= 0:
                    break
    return versions


async def _version_rows(
    session: StatementRunner, side: LookupCollection, keys: Sequence[bytes]
) -> AsyncIterator[list[_VersionRow]]:
    """Yield rows in the order of the keys, in parts whose bodies fit together."""
    parameters = (byteas(keys), bodies.largest_carried(len(keys)))
    (result,) = await session.run([(_VERSIONS, (side.collection.id.bytes, *parameters))])
    rows: dict[bytes, _VersionRow] = {key: (key, 0, 0, None) for key in keys}
    for number in range(result.rows):
        key, body = result.bytes(number, 0), result.raw(number, 3)
        rows[key] = (key, result.integer(number, 1), result.integer(number, 2), body)
    present = [rows[key] for key in keys]
    cells = [(row[0], row[3] or b"") for row in present]
    async for part, omitted in bodies.read_omitted(session, side.collection.raw, cells):
        yield [(*row[:3], omitted.get(row[0], row[3])) for row in present[part]]


def _version(side: LookupCollection, row: _VersionRow, xmax: int, now_ms: int) -> DocumentVersion:
    key, version, xid, body = row
    if version == 0:
        return DocumentVersion(key, 0, 0, None)
    seen = body is not None and _may_see(side, body, now_ms)
    return DocumentVersion(key, version, full_xid(xid, xmax), body if seen else None)


def full_xid(xid: int, xmax: int) -> int:
    """Return the transaction below `xmax` whose lower half is in a row; 0: too long ago."""
    full = xmax - xmax % _XIDS + xid
    if full >= xmax:
        full -= _XIDS
    return full if xid >= _FIRST_XID and full > 0 else 0


async def read_small(
    session: StatementRunner, side: LookupCollection, now_ms: int
) -> list[StoredDocument] | None:
    """Return all readable documents of a collection; None if it is not small."""
    (size,) = await session.run([(_SIZE, (side.collection.id.bytes,))])
    if size.integer(0, 0) > SMALL or size.integer(0, 1) > SMALL_BYTES:
        return None
    (result,) = await session.run([(_ALL, (side.collection.id.bytes,))])
    documents = (row(result, number) for number in range(result.rows))
    return [one for one in documents if _may_see(side, one.body, now_ms)]


def _may_see(side: LookupCollection, body: bytes, now_ms: int) -> bool:
    return side.rule is None or side.rule.matches(body, now_ms)
