"""A topic as the API shows it."""

from __future__ import annotations

from foundation.api.rendering import timestamp
from foundation.json_types import JsonObject
from storage_engine.models import Topic


def describe(topic: Topic) -> JsonObject:
    """Return a topic."""
    return {
        "id": str(topic.id),
        "name": topic.name,
        "kind": topic.kind,
        "grid": topic.grid,
        "retention_s": topic.retention_s,
        "max_data_bytes": topic.max_data_bytes,
        "version": topic.version,
        "created_at": timestamp(topic.created_at),
        "updated_at": timestamp(topic.updated_at),
    }
