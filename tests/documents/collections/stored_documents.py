"""Reads the tables of documents directly, and writes documents through the store."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable
from uuid import UUID

from django.db import connections

from documents.collections.indexes import fields_of
from documents.models import Index
from documents.store.sync import write_all
from documents.store.write import WriteCall
from rillbase_native import Definition, Operation, Operations, Value

Entry = tuple[bytes, bytes, bool, bool]


def put(tenant_id: UUID, collection: str, documents: Iterable[object]) -> None:
    """Write documents through the store."""
    inserts = [
        Operation.insert(Value.parse(json.dumps(document).encode())) for document in documents
    ]
    writes = [
        WriteCall(tenant_id, collection, Operations(inserts[start : start + 500]), atomic=False)
        for start in range(0, len(inserts), 500)
    ]
    for written in write_all(writes):
        assert not written.outcomes.refusals()


def rows(
    statement: str, *parameters: str | int | UUID | datetime.datetime
) -> list[tuple[object, ...]]:
    with connections["relay"].cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())


def index(collection_id: UUID, name: str) -> Index:
    return Index.unscoped.using("relay").get(collection_id=collection_id, name=name)


def entries(number: int) -> set[Entry]:
    """Return all entries of an index: key, document's key, whether it sorts, is enforced."""
    result = rows(
        "SELECT key, document_key, ordering, enforced FROM documents_indexentry "
        "WHERE index_number = %s",
        number,
    )
    return {(bytes(key), bytes(place), bool(o), bool(e)) for key, place, o, e in result}  # type: ignore[call-overload]


def wanted_entries(index: Index) -> set[Entry]:
    """Return the index entries that the current documents must have."""
    definition = Definition(None, [(index.number, fields_of(index), index.unique)])
    return {
        (key, bytes(place), ordering, enforced)  # type: ignore[call-overload]
        for place, body in rows(
            "SELECT key, body FROM documents_document "
            "WHERE collection_id = %s AND body IS NOT NULL",
            index.collection_id,
        )
        for _, key, ordering, enforced in definition.entries(bytes(body))  # type: ignore[call-overload]
    }


def count(collection_id: UUID) -> int:
    """Return how many rows documents and tombstones take."""
    ((number,),) = rows(
        "SELECT count(*) FROM documents_document WHERE collection_id = %s", collection_id
    )
    return int(str(number))
