"""Every call of the data plane of aggregates, with its place in the OpenAPI document."""

from __future__ import annotations

from aggregates.api import events, queries
from aggregates.api.events import NDJSON
from data_plane.calls import Call
from data_plane.http import HttpOperation
from data_plane.http.openapi import FIELD_NAMES, adds, answers, described, members, name_parameter
from foundation.json_types import JsonObject

ROOT = "/v1/aggregates/{aggregate}"
TAG = "Aggregates"

AGGREGATE_PARAMETER = name_parameter("aggregate", "requests_5m")
_MOMENT: JsonObject = {
    "description": "RFC 3339, milliseconds since 1970, or relative to the current time. The "
    "buckets that contain `from` and `to` are included.",
    "type": ["string", "integer"],
    "example": "-24h",
}
_ROW: JsonObject = {
    "type": "object",
    "description": "The values of the `group_by` fields, the measures, and with `compare` the "
    "measures of the `previous` row.",
    "example": {"customer": "acme", "at": "2026-11-21T16:30:00Z", "count": 12, "latency": 81.5},
}
_EVENT: JsonObject = {
    "type": "object",
    "properties": {
        "event_id": {
            "type": "string",
            "maxLength": 256,
            "description": "Retries with the same id within a day add the event once.",
        }
    },
    "additionalProperties": True,
    "example": {"customer": "acme", "app": "shop", "endpoint": "/cart", "latency_ms": 83},
}
_ADDED = members(
    {
        "applied": {"type": "integer"},
        "repeated": {
            "type": "integer",
            "description": "Number of events that had already been added.",
        },
        "lines": {"type": "integer", "description": "Only for a stream of lines."},
        "refused": {
            "type": "array",
            "description": "Only for a stream: lines that were not added, each with its error.",
            "items": members({"line": {"type": "integer"}, "error": {"type": "object"}}),
        },
        "complete": {
            "type": "boolean",
            "description": "Only for a stream: false if it was aborted because too many lines "
            "were rejected.",
        },
    },
    "applied",
    "repeated",
)
QUERY_PROPERTIES: JsonObject = {
    "rollup": {
        **FIELD_NAMES,
        "description": "The rollup whose rows are read; by default the smallest suitable one.",
    },
    "filter": {"type": "object", "description": "A filter on the dimensions."},
    "from": _MOMENT,
    "to": {**_MOMENT, "example": "+0s"},
    "group_by": {
        **FIELD_NAMES,
        "description": "Dimensions and the time field. [] returns one row.",
    },
    "bucket": {
        "type": "string",
        "example": "1h",
        "description": "A multiple of the aggregate's own bucket.",
    },
    "order": {"type": "array", "items": {"type": "array"}, "example": [["count", -1]]},
    "limit": {"type": "integer", "minimum": 1, "maximum": 10_000, "default": 1_000},
    "measures": FIELD_NAMES,
    "compare": {
        "type": "string",
        "description": "Adds to each row the measures of the `previous` period, or of the period "
        "that long ago.",
        "example": "previous",
    },
}
_QUERY = members(
    {
        **QUERY_PROPERTIES,
        "snapshot": {
            "type": "string",
            "description": "`fresh`, or the snapshot of a response of the last minute.",
        },
    },
    closed=True,
)
_ROWS = members(
    {
        "rows": {"type": "array", "items": _ROW},
        "snapshot": {"type": "string"},
        "as_of": {
            "type": ["string", "null"],
            "format": "date-time",
            "description": "Of a view: every write before this time is included.",
        },
        "notices": {
            "type": "array",
            "items": {"type": "object"},
            "description": "Of a view: versions of documents that are missing because its filter "
            "cannot be evaluated on them.",
        },
    },
    "rows",
    "snapshot",
)

OPERATIONS: tuple[HttpOperation[Call], ...] = (
    HttpOperation(
        "POST",
        f"{ROOT}/events",
        events.add,
        described(
            "aggregates_add",
            TAG,
            "Add events",
            {**answers("201", _ADDED), **answers("200", _ADDED)},
            body={
                "application/json": {
                    "oneOf": [_EVENT, {"type": "array", "items": _EVENT, "maxItems": 4_000}]
                },
                NDJSON: {"type": "string"},
            },
            parameters=(AGGREGATE_PARAMETER,),
        ),
    ),
    HttpOperation(
        "POST",
        f"{ROOT}/query",
        queries.query,
        described(
            "aggregates_query",
            TAG,
            "Query rows",
            answers("200", _ROWS),
            body={"application/json": _QUERY},
            parameters=(AGGREGATE_PARAMETER,),
        ),
        is_read=True,
    ),
)


add_to_openapi = adds(OPERATIONS)
