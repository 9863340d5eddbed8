"""An aggregate as shown by the API, and as sent to the storage node."""

from __future__ import annotations

import json
from typing import cast

from aggregates.models import Aggregate
from documents.store.notices import Notices
from foundation.api.rendering import timestamp
from foundation.json_types import JsonObject, JsonValue


def definition_of(aggregate: Aggregate) -> JsonObject:
    """Return dimensions, time, measures and rollups."""
    return cast("JsonObject", json.loads(aggregate.definition))


def describe(aggregate: Aggregate) -> JsonObject:
    """Return an aggregate."""
    return {
        "id": str(aggregate.id),
        "name": aggregate.name,
        **definition_of(aggregate),
        "source": _source(aggregate),
        "retention": aggregate.retention or None,
        "state": aggregate.state,
        "error": aggregate.error or None,
        "generation": aggregate.generation or None,
        "documents_read": aggregate.documents_read if aggregate.is_view else None,
        "notices": list[JsonValue](notices_of(aggregate)),
        "version": aggregate.version,
        "created_at": timestamp(aggregate.created_at),
        "updated_at": timestamp(aggregate.updated_at),
    }


def notices_of(aggregate: Aggregate) -> list[JsonObject]:
    """Return what the rows of a view lack."""
    return Notices(aggregate.left_out, aggregate.left_out_detail).listed()


def for_node(aggregate: Aggregate) -> bytes:
    """Return the definition in the storage node's format."""
    members: JsonObject = {
        **definition_of(aggregate),
        "retention": aggregate.retention or None,
    }
    members["source"] = "view" if aggregate.is_view else "events"
    return json.dumps(members, separators=(",", ":")).encode()


def _source(aggregate: Aggregate) -> JsonObject | None:
    if not aggregate.is_view:
        return None
    return {
        "collection": aggregate.collection_name,
        "filter": json.loads(aggregate.filter) if aggregate.filter else None,
    }
