"""All data-plane calls of datasets, with their OpenAPI descriptions."""

from __future__ import annotations

from analytics.api.loading import loaded
from analytics.media_types import ARROW, NDJSON, PARQUET
from data_plane.calls import Call
from data_plane.http import Operation
from data_plane.http.openapi import (
    FIELD_NAMES,
    adds,
    answers,
    described,
    members,
    parameter,
    place_of,
)
from foundation.json_types import JsonObject

ROOT = "/v1/datasets/{dataset}"
UPLOAD = f"{ROOT}/uploads/{{upload}}"
TAG = "Datasets"

_DATASET = place_of("dataset", "posts")
_UPLOAD_ID: JsonObject = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$"}
_UPLOAD = parameter("upload", "path", _UPLOAD_ID, required=True)
_ID = parameter(
    "id",
    "query",
    _UPLOAD_ID,
    description="Names the upload: it is committed once, however often it is sent.",
)
_TABLE = parameter(
    "table", "query", {"type": "string"}, description="Of Arrow and Parquet: the rows' table."
)
_OP = parameter(
    "op",
    "query",
    {"type": "string", "enum": ["insert", "update", "delete"], "default": "insert"},
    description="Of Arrow and Parquet: what is done with the rows.",
)
_OPEN = parameter(
    "open",
    "query",
    {"type": "string", "enum": ["true", "false"]},
    description="Only opens the upload; rows are appended, and seen once it is committed.",
)
_MOMENT: JsonObject = {"type": "string", "format": "date-time"}
_BINARY: JsonObject = {"type": "string", "format": "binary"}
_BODIES: dict[str, JsonObject] = {
    NDJSON: {
        "type": "string",
        "description": "Lines that name their tables.",
        "example": '{"posts": {"id": 1, "text": "Hello"}}\n'
        '{"posts": {"id": 1, "text": "Hello again"}, "op": "update"}\n',
    },
    ARROW: _BINARY,
    PARQUET: _BINARY,
}
_SHOWN = members(
    {
        "id": {"type": "string"},
        "status": {"type": "string", "enum": ["open", "committed", "aborted"]},
        "state": {
            "type": ["integer", "null"],
            "description": "Once it is committed: the state of the dataset that it made.",
        },
        "stage": {
            "type": ["string", "null"],
            "enum": ["unsorted", "remapped", "sorted", "merged", "authority", None],
            "description": "How far its rows have come.",
        },
        "rows": {"type": "integer"},
        "bytes": {"type": "integer"},
        "created_at": _MOMENT,
        "committed_at": {**_MOMENT, "type": ["string", "null"]},
    },
    "id",
    "status",
    "state",
    "stage",
    "rows",
    "bytes",
    "created_at",
    "committed_at",
)
_FILTER: JsonObject = {
    "type": "object",
    "example": {"author": "ada", "at": {"$gte": "2026-11-01T00:00:00Z"}},
}
_QUERY = members(
    {
        "table": {"type": "string"},
        "columns": {**FIELD_NAMES, "description": "All, if it is not given."},
        "filter": _FILTER,
        "group_by": {**FIELD_NAMES, "description": "[] is one group of all rows."},
        "aggregates": {
            "type": "object",
            "additionalProperties": members(
                {
                    "op": {
                        "type": "string",
                        "enum": ["count", "sum", "min", "max", "avg", "distinct"],
                    },
                    "column": {"type": "string"},
                },
                "op",
                closed=True,
            ),
            "example": {"posts": {"op": "count"}, "last": {"op": "max", "column": "at"}},
        },
        "having": {"type": "object", "description": "A filter over groups."},
        "order": {"type": "array", "items": {"type": "array"}, "example": [["posts", -1]]},
        "limit": {"type": "integer", "minimum": 1, "maximum": 1_000_000, "default": 1_000},
        "freshness": {
            "type": ["number", "string"],
            "description": "Seconds: all that was committed longer ago is seen. 0, as is usual: "
            "everything that was acknowledged. `any`: what has been merged completely.",
        },
        "state": {"type": "integer", "description": "Exactly this state, while it is kept."},
        "as_of": {**_MOMENT, "description": "The newest state of that moment."},
        "since": {
            "type": "integer",
            "description": "No earlier state than this, such as the last one that was answered.",
        },
    },
    "table",
    closed=True,
)
_READ_STAGE = members(
    {
        name: {"type": "integer"}
        for name in ("files", "files_skipped", "rows", "row_groups", "row_groups_skipped")
    },
    "files",
    "files_skipped",
    "rows",
)
_ROWS = members(
    {
        "rows": {"type": "array", "items": {"type": "object"}},
        "state": {"type": "integer", "description": "The state that was asked."},
        "freshness_s": {
            "type": "number",
            "description": "How long ago the first upload was committed that is not in it; 0: "
            "there is none.",
        },
        "read": members(
            dict.fromkeys(("authority", "merged", "sorted", "unsorted"), _READ_STAGE),
            "authority",
            "merged",
            "sorted",
            "unsorted",
        ),
    },
    "rows",
    "state",
    "freshness_s",
    "read",
)
_STAGE = members(
    {
        "first": {"type": ["integer", "null"], "description": "The uploads that it holds."},
        "last": {"type": ["integer", "null"]},
        "rows": {"type": "integer"},
        "bytes": {"type": "integer"},
        "lag_s": {
            "type": "number",
            "description": "How old the oldest upload is that has not come so far; 0: all have.",
        },
        "rows_per_s": {"type": "number", "description": "What came here within a minute."},
    },
    "first",
    "last",
    "rows",
    "bytes",
    "lag_s",
    "rows_per_s",
)
_PIPELINE = members(
    {
        "state": {"type": "integer", "description": "The newest state."},
        "authority_state": {"type": "integer", "description": "What has been merged completely."},
        "error": {"type": ["string", "null"], "description": "Why it does not go on."},
        "stages": members(
            {
                **dict.fromkeys(("unsorted", "sorted", "merged", "authority"), _STAGE),
                "remapped": {
                    **_STAGE,
                    "description": "Keys have ids, rows are not sorted yet. Only with ID-keys.",
                },
            },
            "unsorted",
            "sorted",
            "merged",
            "authority",
        ),
        "reads": {
            "type": "array",
            "description": "For several freshnesses, what a query would have to look at.",
            "items": members(
                {
                    "freshness": {"type": ["number", "string"]},
                    "state": {"type": "integer"},
                    "files": {"type": "object"},
                    "rows": {"type": "integer"},
                }
            ),
        },
        "uploads": {"type": "array", "description": "The newest ones.", "items": _SHOWN},
        "iceberg": members(
            {
                "namespace": {"type": "string", "description": "Of the dataset's tables there."},
                "tag": {"type": ["string", "null"], "description": "Of the newest state there."},
            }
        ),
    },
    "state",
    "authority_state",
    "error",
    "stages",
    "reads",
    "uploads",
    "iceberg",
)
_DEFINITION = members(
    {
        "name": {"type": "string"},
        "tables": {"type": "object"},
        "id_keys": {"type": "object"},
        "state": {"type": "integer"},
    },
    "name",
    "tables",
    "id_keys",
    "state",
)
_ROWS_OR_ARROW: JsonObject = {
    "200": {
        "description": "Done",
        "content": {"application/json": {"schema": _ROWS}, ARROW: {"schema": _BINARY}},
    }
}


OPERATIONS: tuple[Operation[Call], ...] = (
    Operation(
        "GET",
        ROOT,
        loaded("definitions", "read"),
        described(
            "datasets_definition",
            TAG,
            "Read a dataset's definition",
            answers("200", _DEFINITION),
            parameters=(_DATASET,),
        ),
    ),
    Operation(
        "GET",
        f"{ROOT}/pipeline",
        loaded("pipeline", "read"),
        described(
            "datasets_pipeline",
            TAG,
            "Read how far uploads have come",
            answers("200", _PIPELINE),
            parameters=(_DATASET,),
        ),
    ),
    Operation(
        "POST",
        f"{ROOT}/uploads",
        loaded("uploads", "upload"),
        described(
            "datasets_upload",
            TAG,
            "Upload rows, or open an upload",
            {**answers("201", _SHOWN), **answers("200", _SHOWN)},
            body=_BODIES,
            parameters=(_DATASET, _ID, _TABLE, _OP, _OPEN),
        ),
    ),
    Operation(
        "GET",
        UPLOAD,
        loaded("uploads", "read"),
        described(
            "datasets_upload_read",
            TAG,
            "Read how an upload stands",
            answers("200", _SHOWN),
            parameters=(_DATASET, _UPLOAD),
        ),
    ),
    Operation(
        "POST",
        f"{UPLOAD}:append",
        loaded("uploads", "append"),
        described(
            "datasets_upload_append",
            TAG,
            "Append rows to an open upload",
            answers("200", _SHOWN),
            body=_BODIES,
            parameters=(_DATASET, _UPLOAD, _TABLE, _OP),
        ),
    ),
    Operation(
        "POST",
        f"{UPLOAD}:commit",
        loaded("uploads", "commit"),
        described(
            "datasets_upload_commit",
            TAG,
            "Commit an upload: all of it is seen from now on",
            answers("200", _SHOWN),
            parameters=(_DATASET, _UPLOAD),
        ),
    ),
    Operation(
        "POST",
        f"{UPLOAD}:abort",
        loaded("uploads", "abort"),
        described(
            "datasets_upload_abort",
            TAG,
            "Give an open upload up",
            answers("200", _SHOWN),
            parameters=(_DATASET, _UPLOAD),
        ),
    ),
    Operation(
        "POST",
        f"{ROOT}/query",
        loaded("queries", "query"),
        described(
            "datasets_query",
            TAG,
            "Query rows as fresh as they have to be",
            _ROWS_OR_ARROW,
            body={"application/json": _QUERY},
            parameters=(_DATASET,),
        ),
    ),
)


add_to_openapi = adds(OPERATIONS)
