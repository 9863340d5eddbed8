"""Referenced documents, read in the snapshot of the query that includes them. The caller must be
allowed to read them as well: documents that the `read` rule of their collection hides are absent,
like those that do not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from documents.store import facts
from documents.store.access import NOTHING, access_of
from documents.store.facts import CollectionFacts
from documents.store.large_results import ReadAllowance
from documents.store.snapshot import DocumentSnapshot, DocumentVersion
from documents.store.stored_document import StoredDocument
from foundation.errors import QueryTooExpensive
from rillbase_native import Filter, Lookups
from tenants.principals import Principal

#: Maximum number of documents that one page looks up, each counted once.
MAX_LOOKED_UP = 10_000
MAX_BYTES = 64 * 1024 * 1024
#: Maximum size of a collection that is read completely.
SMALL, SMALL_BYTES = 1_000, 1024 * 1024
#: Documents per statement.
AT_ONCE = 1_000
VERSIONS_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class LookupCollection:
    """A collection of a lookup, with the access of one caller."""

    collection: CollectionFacts
    #: None: access rules do not apply to the caller.
    rule: Filter | None


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
    snapshot: DocumentSnapshot,
    sides: Sequence[LookupCollection],
    keys: Sequence[Sequence[bytes]],
    most_bytes: int,
    now_ms: int,
) -> list[list[DocumentVersion]] | None:
    """Return the versions of documents, for each lookup, without the contents that the caller may
    not read. Beyond a number of bytes, the rest is omitted. None: a collection has changed.
    """
    if not await snapshot.are_current([side.collection for side in sides]):
        return None
    versions: list[list[DocumentVersion]] = []
    for side, side_keys in zip(sides, keys, strict=True):
        versions.append([])
        for begin in range(0, len(side_keys), VERSIONS_AT_ONCE):
            some = side_keys[begin : begin + VERSIONS_AT_ONCE]
            if most_bytes <= 0:
                break
            async for rows in snapshot.versions(side.collection, some):
                read = [_readable_version(side, row, now_ms) for row in rows]
                most_bytes -= sum(len(one.key) + len(one.body or b"") for one in read)
                versions[-1] += read
                if most_bytes <= 0:
                    break
    return versions


def _readable_version(
    side: LookupCollection, version: DocumentVersion, now_ms: int
) -> DocumentVersion:
    if version.body is None or _may_see(side, version.body, now_ms):
        return version
    return replace(version, body=None)


async def read_small(
    snapshot: DocumentSnapshot, side: LookupCollection, now_ms: int
) -> list[StoredDocument] | None:
    """Return all readable documents of a collection; None if it is not small."""
    documents = await snapshot.all_documents(
        side.collection, max_documents=SMALL, max_bytes=SMALL_BYTES
    )
    if documents is None:
        return None
    return [one for one in documents if _may_see(side, one.body, now_ms)]


def _may_see(side: LookupCollection, body: bytes, now_ms: int) -> bool:
    return side.rule is None or side.rule.matches(body, now_ms)
