"""Adds existing documents to a new index, while reads and writes continue.

Why the index is correct once it is ready: let E(d) be the entries that a document d in its current
state must have. As an invariant, an index has for each document a subset of E(d), and nothing else:

- A writer locks the document's row, removes what only the before-image had and adds what only the
  after-image has. From a subset of E(before), a subset of E(after) remains, and every entry that is
  new is added. Writers do so from the moment the index is declared: it is declared under the
  exclusive lock, and they hold that lock shared and give up if the collection has changed.
- The backfill locks rows, reads their current state and adds what is missing of E(d). No writer can
  change these documents before it commits.

So once the backfill has locked a document, all of E(d) is in and stays in; and a document created
later never lacked anything, wherever its key lies. When no document is left after the position, the
index is complete. It is declared ready under the exclusive lock, so that no reader sees it ready
before the last batch is committed.

An index that documents violate (two with the same values in a unique one; arrays side by side)
becomes `failed`, with an error that names a document; its entries go. Violations of a unique index
are found by PostgreSQL's own unique index over enforced entries, against writers' entries too.

Each batch is a short transaction of bounded documents and bytes and advances `position`, so a
backfill that was killed resumes there. Two concurrent backfills take turns by the lock of the
index's row, or the second one exits.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import IntegrityError, OperationalError, connections, transaction
from django.db.models import F

from documents.collections.actions import BACKFILL_TASK, DROP_INDEX_TASK, end_replacement
from documents.collections.indexes import fields_of
from documents.collections.node_upkeep import build_part, install_after_commit, sizes_of
from documents.models import Collection, Index
from documents.store.locks import lock_exclusively, lock_shared
from documents.store.node.definitions import IndexViolated
from foundation.json_types import JsonObject
from foundation.scope import scoped
from foundation.tasks import run_after_commit, task
from rillbase_native import Definition, QueryError, format_id, id_of

BATCH_DOCUMENTS = 1_000
BATCH_BYTES = 32 * 1024 * 1024
#: A task works for this long, then yields to others.
SLICE_S = 5.0
#: Above this number, documents are not counted beforehand, and the total grows with the progress.
MAX_COUNTED = 5_000_000
#: Deadlock or lock timeout: another transaction went first.
_TRY_AGAIN = frozenset({"40P01", "55P03"})

_COUNT = (
    "SELECT count(*) FROM (SELECT FROM documents_document "
    "WHERE collection_id = %s AND body IS NOT NULL LIMIT %s) AS counted"
)
#: The last document of the next batch, bounded in documents and bytes.
_END = """
SELECT max(key) FROM (
    SELECT key, sum(size) OVER (ORDER BY key) - size AS size_before FROM (
        SELECT key, octet_length(body) AS size FROM documents_document
        WHERE collection_id = %s AND key > %s AND body IS NOT NULL
        ORDER BY key LIMIT %s
    ) AS few
) AS sized
WHERE size_before < %s
"""
#: Rows are locked in the order of their keys, as writers do, and read as they are once locked.
_LOCK = (
    "SELECT key, body FROM documents_document WHERE collection_id = %s AND key > %s AND key <= %s "
    "AND body IS NOT NULL ORDER BY key FOR SHARE"
)
_ADD = """
INSERT INTO documents_indexentry
    (tenant_id, index_number, key, document_key, ordering, enforced)
SELECT %s, %s, e.* FROM unnest(%s::bytea[], %s::bytea[], %s::bool[], %s::bool[])
    AS e (key, document_key, ordering, enforced)
ON CONFLICT (index_number, key, document_key) DO NOTHING
"""
_IN_THE_WAY = """
SELECT d.body FROM documents_indexentry e
JOIN documents_document d ON d.collection_id = %s AND d.key = e.document_key
WHERE e.index_number = %s AND e.key = %s AND e.enforced AND e.document_key <> %s
    AND d.body IS NOT NULL
"""

#: A document's key, its body, and its entries: key, whether it sorts, whether it is enforced.
_Document = tuple[bytes, bytes, list[tuple[bytes, bool, bool]]]


@dataclass(frozen=True, slots=True)
class _Batch:
    """Locked documents, and the key after which the next batch begins."""

    end: bytes
    documents: Sequence[_Document]


@task(name=BACKFILL_TASK)
def backfill(*, tenant: str, index: int) -> None:
    """Work for a while; then queue a task of the same kind to continue."""
    tenant_id, deadline = UUID(tenant), time.monotonic() + SLICE_S
    _count(tenant_id, index)
    while step(tenant_id, index):
        if time.monotonic() > deadline:
            with scoped(tenant_id=tenant_id):
                arguments: JsonObject = {"tenant": tenant, "index": index}
                run_after_commit(BACKFILL_TASK, arguments, tenant_id=tenant_id)
            return


def step(tenant_id: UUID, number: int) -> bool:
    """Do one batch, or finish. Return whether there is more to do."""
    try:
        with scoped(tenant_id=tenant_id):
            index = _claim(number)
            if index is None:
                return False
            if index.collection.is_native:
                if _build_in_node(index):
                    return True
                batch = None
            else:
                batch = _next(index)
            if batch is not None:
                _add_entries(index, batch)
                return True
        _finish(tenant_id, number, Index.State.READY, "")
    except IndexViolated as error:
        _finish(tenant_id, number, Index.State.FAILED, str(error))
    except IntegrityError:
        # The conflicting document disappeared before it could be named.
        return True
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) not in _TRY_AGAIN:
            raise
        return True
    return False


def _count(tenant_id: UUID, number: int) -> None:
    """Record the total number of documents, before the first batch."""
    with scoped(tenant_id=tenant_id):
        fresh = Index.objects.filter(number=number, position=None, state=Index.State.BUILDING)
        index = fresh.first()
        if index is None:
            return
        collection = index.collection
        if collection.is_native:
            sizes = sizes_of(collection.tenant_id, [collection.pk])
            total = sizes[collection.pk].documents
        else:
            with connections["default"].cursor() as cursor:
                cursor.execute(_COUNT, (collection.pk, MAX_COUNTED))
                (total,) = cursor.fetchone()
        fresh.update(documents_total=total)


def _claim(number: int) -> Index | None:
    """Lock like writers, then lock the index's row; None: nothing to do, or another task has the
    lock.
    """
    building = Index.objects.filter(number=number, state=Index.State.BUILDING)
    collection_id = building.values_list("collection_id", flat=True).first()
    if collection_id is None:
        return None
    lock_shared(collection_id)
    active = building.filter(collection__state=Collection.State.ACTIVE)
    return active.select_for_update(of=("self",), skip_locked=True).first()


def _build_in_node(index: Index) -> bool:
    """Add documents in the storage node. Return whether there are more."""
    collection = index.collection
    position = bytes(index.position or b"")
    part = build_part(
        collection.tenant_id, collection.name, index.number, position, BATCH_DOCUMENTS
    )
    _advance(index, part.after or position, part.documents)
    return part.after is not None


def _next(index: Index) -> _Batch | None:
    """Lock and read the next documents; None: there are none."""
    position = bytes(index.position or b"")
    with connections["default"].cursor() as cursor:
        cursor.execute(_END, (index.collection_id, position, BATCH_DOCUMENTS, BATCH_BYTES))
        (end,) = cursor.fetchone()
        if end is None:
            return None
        cursor.execute(_LOCK, (index.collection_id, position, end))
        rows = [(bytes(key), bytes(body)) for key, body in cursor.fetchall()]
    definition = Definition(None, [(index.number, fields_of(index), index.unique)])
    return _Batch(bytes(end), [(key, body, _entries(definition, body)) for key, body in rows])


def _entries(definition: Definition, body: bytes) -> list[tuple[bytes, bool, bool]]:
    try:
        entries = definition.entries(body)
    except QueryError as error:
        raise IndexViolated(f"Document {_name(body)}: {error.detail}.") from None
    return [(key, ordering, enforced) for _, key, ordering, enforced in entries]


def _add_entries(index: Index, batch: _Batch) -> None:
    """Add the missing entries of the documents and advance the position."""
    entries = [
        (key, document_key, ordering, enforced)
        for document_key, _, index_entries in batch.documents
        for key, ordering, enforced in index_entries
    ]
    columns = [list(column) for column in zip(*entries, strict=True)] or [[], [], [], []]
    try:
        with transaction.atomic(), connections["default"].cursor() as cursor:
            cursor.execute(_ADD, (index.tenant_id, index.number, *columns))
    except IntegrityError:
        _name_duplicates(index, batch)
        raise
    _advance(index, batch.end, len(batch.documents))


def _advance(index: Index, position: bytes, documents: int) -> None:
    rows = Index.objects.filter(number=index.number)
    rows.update(position=position, documents_done=F("documents_done") + documents)
    rows.filter(documents_done__gt=F("documents_total")).update(documents_total=F("documents_done"))


def _name_duplicates(index: Index, batch: _Batch) -> None:
    """Raise `IndexViolated` naming two documents with the same values."""
    seen: dict[bytes, tuple[bytes, bytes]] = {}
    for document_key, body, entries in batch.documents:
        for key in (key for key, _, enforced in entries if enforced):
            other = seen.setdefault(key, (document_key, body))
            if other[0] != document_key:
                raise _same_values(other[1], body)
    with connections["default"].cursor() as cursor:
        for key, (document_key, body) in seen.items():
            cursor.execute(_IN_THE_WAY, (index.collection_id, index.number, key, document_key))
            row = cursor.fetchone()
            if row is not None:
                raise _same_values(bytes(row[0]), body)


def _same_values(first: bytes, second: bytes) -> IndexViolated:
    return IndexViolated(f"Documents {_name(first)} and {_name(second)} have the same key.")


def _name(body: bytes) -> str:
    """Return a document's `_id` as in paths, truncated if it is long."""
    return format_id(id_of(body))[:200]


def _finish(tenant_id: UUID, number: int, state: Index.State, error: str) -> None:
    """Declare the index ready, or failed, unless it has been dropped meanwhile."""
    with scoped(tenant_id=tenant_id):
        row = Index.objects.filter(number=number).values_list("collection_id", flat=True).first()
        if row is None:
            return
        lock_exclusively(row)
        collection = Collection.objects.select_for_update().get(pk=row)
        index = Index.objects.filter(number=number, state=Index.State.BUILDING).first()
        if index is None:
            return
        index.state, index.error = state, error
        if state == Index.State.READY:
            # Parts of an embedded index may be complete before it is built.
            index.documents_done = max(index.documents_done, index.documents_total)
        index.save(update_fields=["state", "error", "documents_done"])
        end_replacement(collection, index)
        collection.write_version += 1
        collection.save_next_version()
        install_after_commit(collection)
        if state == Index.State.FAILED:
            run_after_commit(DROP_INDEX_TASK, {"index": number}, tenant_id=tenant_id)
