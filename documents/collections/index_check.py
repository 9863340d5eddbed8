"""Compares the stored entries of indexes with those that the documents have, while a collection is
read and written.

Each part is read at one moment. Entries are compared in both directions: for each document, whether
its entries are stored, and for each stored entry, whether a document has it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from django.db import connections, transaction

from documents.collections.indexes import fields_of
from documents.collections.node_upkeep import check_part
from documents.models import Collection, Index
from documents.store import reads
from documents.store.sync import run
from rillbase_native import Definition, format_id, id_of

ALIAS = "relay"
PART_DOCUMENTS, PART_BYTES, PART_ENTRIES = 500, 4 * 1024 * 1024, 5_000
#: A check ends with this many faults.
MOST_FAULTS = 1_000

_DOCUMENTS = """
SELECT key, body FROM (
    SELECT *, sum(octet_length(body)) OVER (ORDER BY key) - octet_length(body) AS size_before
    FROM (
        SELECT key, body FROM documents_document
        WHERE collection_id = %s AND key > %s AND body IS NOT NULL ORDER BY key LIMIT %s
    ) AS few
) AS sized
WHERE size_before < %s
"""
_ENTRIES_OF = (
    "SELECT document_key, index_number, key, ordering, enforced FROM documents_indexentry "
    "WHERE index_number = ANY(%s) AND document_key = ANY(%s)"
)
_ENTRIES = """
SELECT e.key, e.document_key, d.key IS NULL FROM documents_indexentry e
LEFT JOIN documents_document d
    ON d.collection_id = %s AND d.key = e.document_key AND d.body IS NOT NULL
WHERE e.index_number = %s AND (e.key, e.document_key) > (%s, %s)
ORDER BY e.key, e.document_key LIMIT %s
"""

_Entry = tuple[int, bytes, bool, bool]


class IndexFault(NamedTuple):
    """An index whose entries of a document are not those that the document has."""

    index_name: str
    #: As in paths; the key in hexadecimal digits if the document does not exist.
    document: str


class CheckStep(NamedTuple):
    """A part of a collection that was compared."""

    documents: int
    entries: int
    #: Numbers of indexes, with keys of documents.
    faults: Sequence[tuple[int, bytes]]


@dataclass
class IndexReport:
    """What a check has found."""

    documents: int = 0
    entries: int = 0
    faults: list[IndexFault] = field(default_factory=list)


def check_indexes(collection: Collection) -> IndexReport:
    """Compare all ready indexes of a collection with its documents."""
    report = IndexReport()
    parts = _in_node(collection) if collection.is_native else _in_postgres(collection)
    for part in parts:
        report.documents += part.documents
        report.entries += part.entries
        if part.faults:
            report.faults += _named(collection, part.faults)
        if len(report.faults) >= MOST_FAULTS:
            break
    return report


def _ready(collection: Collection) -> list[Index]:
    rows = Index.unscoped.using(ALIAS).filter(collection=collection, state=Index.State.READY)
    return list(rows.order_by("number"))


def _in_node(collection: Collection) -> Iterator[CheckStep]:
    place = (collection.tenant_id, collection.name)
    after: tuple[bytes, bytes] | None = (b"", b"")
    while after is not None:
        part = check_part(*place, 0, after)
        yield CheckStep(part.examined, 0, part.faults)
        after = part.after
    for index in _ready(collection):
        after = (b"", b"")
        while after is not None:
            part = check_part(*place, index.number, after)
            yield CheckStep(0, part.examined, part.faults)
            after = part.after


def _in_postgres(collection: Collection) -> Iterator[CheckStep]:
    key = b""
    while True:
        part, last = _documents_in_postgres(collection, key)
        yield part
        if last is None:
            break
        key = last
    for index in _ready(collection):
        yield from _entries_in_postgres(collection, index)


def _documents_in_postgres(collection: Collection, after: bytes) -> tuple[CheckStep, bytes | None]:
    """Compare the documents that follow a key. Also return the last key; None: there are none."""
    with transaction.atomic(using=ALIAS), connections[ALIAS].cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute(_DOCUMENTS, (collection.pk, after, PART_DOCUMENTS, PART_BYTES))
        documents = {bytes(key): bytes(body) for key, body in cursor.fetchall()}
        indexes = _ready(collection)
        numbers = [index.number for index in indexes]
        cursor.execute(_ENTRIES_OF, (numbers, list(documents)))
        stored: defaultdict[bytes, set[_Entry]] = defaultdict(set)
        for key, number, entry, ordering, enforced in cursor.fetchall():
            stored[bytes(key)].add((number, bytes(entry), ordering, enforced))
    declared = [(index.number, fields_of(index), index.unique) for index in indexes]
    definition = Definition(None, declared)
    faults = []
    for key, body in documents.items():
        differing = stored[key].symmetric_difference(definition.entries(body))
        faults += [(number, key) for number in sorted({number for number, *_ in differing})]
    return CheckStep(len(documents), 0, faults), max(documents, default=None)


def _entries_in_postgres(collection: Collection, index: Index) -> Iterator[CheckStep]:
    """Find entries of documents that do not exist."""
    place = (b"", b"")
    while True:
        with connections[ALIAS].cursor() as cursor:
            cursor.execute(_ENTRIES, (collection.pk, index.number, *place, PART_ENTRIES))
            rows = [(bytes(key), bytes(owner), orphan) for key, owner, orphan in cursor.fetchall()]
        orphans = [(index.number, owner) for _, owner, is_orphan in rows if is_orphan]
        yield CheckStep(0, len(rows), orphans)
        if len(rows) < PART_ENTRIES:
            return
        place = rows[-1][:2]


def _named(collection: Collection, faults: Sequence[tuple[int, bytes]]) -> list[IndexFault]:
    """Return faults with the names of indexes and the ids of documents."""
    names = {index.number: index.name for index in _ready(collection)}
    keys = sorted({key for _, key in faults})
    now_ms = time.time_ns() // 1_000_000
    read = partial(reads.get, collection.tenant_id, collection.name, keys, None, now_ms)
    documents = run(read)
    shown = {key: format_id(id_of(document.body)) for key, document in documents.items()}
    return [
        IndexFault(names.get(number, str(number)), shown.get(key, key.hex()))
        for number, key in faults
    ]
