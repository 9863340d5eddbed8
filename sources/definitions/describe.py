"""A source as the API shows it."""

from __future__ import annotations

from foundation.api.rendering import timestamp
from foundation.json_types import JsonObject
from sources.models import Source
from sources.upstream.lsn import format_lsn
from sources.upstream.slot import publication_name, slot_name


def configured_fields(source: Source) -> JsonObject:
    """Return the configured fields of a source, as recorded in the audit log."""
    return {
        "id": str(source.id),
        "collection": source.collection_name,
        "connection": source.connection,
        "schema": source.schema_name,
        "table": source.table_name,
        "key": source.key,
        "columns": source.columns,
        "paused": source.desired_state == Source.DesiredState.PAUSED,
    }


def describe(source: Source) -> JsonObject:
    """Return a source with its status."""
    deadline = source.removing_until
    return {
        **configured_fields(source),
        "state": source.state,
        "condition": _condition(source),
        "removing_until": None if deadline is None else timestamp(deadline),
        "rows_copied": source.rows_copied,
        "copy_reason": source.copy_reason or None,
        "confirmed_lsn": format_lsn(source.confirmed) if source.confirmed else None,
        "slot": slot_name(source.id, source.generation) if source.generation else None,
        "publication": publication_name(source.id),
        "slot_bytes": source.slot_bytes,
        "lag_bytes": source.lag_bytes,
        "lag_ms": source.lag_ms,
        "seen_at": None if source.seen_at is None else timestamp(source.seen_at),
        "version": source.version,
        "created_at": timestamp(source.created_at),
        "updated_at": timestamp(source.updated_at),
    }


def _condition(source: Source) -> JsonObject | None:
    if not source.condition:
        return None
    since = source.condition_since
    return {
        "code": source.condition,
        "detail": source.detail,
        "since": None if since is None else timestamp(since),
    }
