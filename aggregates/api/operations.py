"""Every call of the data plane of aggregates, with its place in the OpenAPI document."""

from __future__ import annotations

from aggregates.api import events, queries
from aggregates.api.events import NDJSON
from data_plane.calls import Call
from data_plane.http import Operation
from data_plane.http.openapi import FIELD_NAMES, adds, answers, described, members, place_of
from foundation.json_types import JsonObject

ROOT = "/v1/aggregates/{aggregate}"
TAG = "Aggregates"

AGGREGATE_PARAMETER = place_of("aggregate", "requests_5m")
_MOMENT: JsonObject = {
    "description": "RFC 3339, milliseconds since 1970, or relative to now. The buckets that `from` "
    "and `to` lie in are included.",
    "type": ["string", "integer"],
    "example": "-24h",
}
_ROW: JsonObject = {
    "type": "object",
    "description": "What it is grouped by, its measures, and with `compare` the `previous` ones.",
    "example": {"customer": "acme", "at": "2026-11-21T16:30:00Z", "count": 12, "latency": 81.5},
}
_EVENT: JsonObject = {
    "type": "object",
    "properties": {
        "event_id": {
            "type": "string",
            "maxLength": 256,
            "description": "Added once under it, within a day.",
        }
    },
    "additionalProperties": True,
    "example": {"customer": "acme", "app": "shop", "endpoint": "/cart", "latency_ms": 83},
}
_ADDED = members(
    {
        "applied": {"type": "integer"},
        "repeated": {"type": "integer", "description": "Events that had come before."},
        "lines": {"type": "integer", "description": "Of a stream."},
        "refused": {
            "type": "array",
            "description": "Of a stream: lines that were not added, each with its error.",
            "items": members({"line": {"type": "integer"}, "error": {"type": "object"}}),
        },
        "complete": {
            "type": "boolean",
            "description": "Of a stream: false if it was given up for its refused lines.",
        },
    },
    "applied",
    "repeated",
)
QUERY_PROPERTIES: JsonObject = {
    "rollup": {**FIELD_NAMES, "description": "Whose rows are read; otherwise the fewest that do."},
    "filter": {"type": "object", "description": "On the dimensions."},
    "from": _MOMENT,
    "to": {**_MOMENT, "example": "+0s"},
    "group_by": {**FIELD_NAMES, "description": "Dimensions, and the time's field; [] is one row."},
    "bucket": {"type": "string", "example": "1h", "description": "A multiple of the own one."},
    "order": {"type": "array", "items": {"type": "array"}, "example": [["count", -1]]},
    "limit": {"type": "integer", "minimum": 1, "maximum": 10_000, "default": 1_000},
    "measures": FIELD_NAMES,
    "compare": {
        "type": "string",
        "description": "Sets each row beside the one of the `previous` period, or of so long ago.",
        "example": "previous",
    },
}
_QUERY = members(
    {
        **QUERY_PROPERTIES,
        "snapshot": {
            "type": "string",
            "description": "`fresh`, or the one of an earlier answer, within a minute.",
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
            "description": "Of a view: whatever was written before it is in.",
        },
        "notices": {
            "type": "array",
            "items": {"type": "object"},
            "description": "Of a view: versions of documents that it lacks, since its filter "
            "cannot be evaluated on them.",
        },
    },
    "rows",
    "snapshot",
)

OPERATIONS: tuple[Operation[Call], ...] = (
    Operation(
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
    Operation(
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
    ),
)


add_to_openapi = adds(OPERATIONS)
