"""A collection as the API shows it."""

from __future__ import annotations

import json
from collections.abc import Iterable

from documents.collections.indexes import is_declared
from documents.models import Collection, CollectionMove, Index
from foundation.api.rendering import timestamp
from foundation.json_types import JsonObject, JsonValue
from rillbase_native import Value


def describe(
    collection: Collection, indexes: Iterable[Index], *, canonical: bool = False
) -> JsonObject:
    """Return a collection with its indexes, in relaxed or canonical Extended JSON."""
    schema = collection.schema
    move: CollectionMove | None = getattr(collection, "move", None)
    return {
        "id": str(collection.id),
        "name": collection.name,
        "schema": None if schema is None else _parsed_json(schema, canonical=canonical),
        "access_rules": _parsed_json(collection.access_rules, canonical=canonical),
        "indexes": [_index(index) for index in indexes if is_declared(index)],
        "ttl": collection.ttl,
        "backend": collection.backend,
        "move": None if move is None else _move(move),
        "read_only": collection.source_id is not None,
        "version": collection.version,
        "created_at": timestamp(collection.created_at),
        "updated_at": timestamp(collection.updated_at),
    }


def _index(index: Index) -> JsonObject:
    return {
        "name": index.name,
        "fields": index.fields,
        "unique": index.unique,
        "technique": index.technique,
        "technique_in_use": index.technique_in_use,
        "advice": index.advice,
        "state": index.state,
        "progress": {"done": index.documents_done, "total": index.documents_total},
        "error": index.error or None,
    }


def _move(move: CollectionMove) -> JsonObject:
    return {
        "backend": move.backend,
        "state": "failed" if move.state == CollectionMove.State.FAILED else "copying",
        "progress": {"done": move.documents_done, "total": move.documents_total},
        "error": move.error or None,
    }


def _parsed_json(text: str, *, canonical: bool) -> JsonValue:
    value: JsonValue = json.loads(Value.parse(text.encode()).ejson(canonical=canonical))
    return value
