"""All data-plane calls of datasets, with their OpenAPI descriptions."""

from __future__ import annotations

from analytics.api.loading import loaded
from analytics.api.sql_openapi import SQL_ANSWERS, SQL_BODY
from analytics.media_types import ARROW, CSV, JSON, NDJSON, PARQUET
from data_plane.calls import Call
from data_plane.http import HttpOperation
from data_plane.http.openapi import (
    FIELD_NAMES,
    adds,
    answers,
    described,
    members,
    name_parameter,
    parameter,
)
from documents.api.transfer_openapi import FILE_PARAMETERS, FILES, PREVIEW, WHOLE
from foundation.json_types import JsonObject

ROOT = "/v1/datasets/{dataset}"
UPLOAD = f"{ROOT}/uploads/{{upload}}"
TAG = "Datasets"

_DATASET = name_parameter("dataset", "posts")
_UPLOAD_ID: JsonObject = {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$"}
_UPLOAD = parameter("upload", "path", _UPLOAD_ID, required=True)
_ID = parameter(
    "id",
    "query",
    _UPLOAD_ID,
    description="Identifies the upload: retries with the same id commit it once.",
)
_TABLE = parameter(
    "table",
    "query",
    {"type": "string"},
    description="The table of the rows. Not for NDJSON whose lines name their tables.",
)
_OP = parameter(
    "op",
    "query",
    {"type": "string", "enum": ["insert", "update", "delete"], "default": "insert"},
    description="The operation that is applied to the rows of the table.",
)
_OPEN = parameter(
    "open",
    "query",
    {"type": "string", "enum": ["true", "false"]},
    description="Only opens the upload. Rows are appended afterwards and become visible when it "
    "is committed.",
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
    JSON: {"description": "An array of rows of a table, or one row."},
    CSV: {"type": "string", "description": "Rows of a table. RFC 4180, in UTF-8."},
    ARROW: _BINARY,
    PARQUET: _BINARY,
}
_FILE_COLUMNS = parameter(
    "columns",
    "query",
    {"type": "string"},
    description="A JSON array such as `[{"
    '"from":"Price","to":"price"}]`: the columns of the file to upload, and the columns of the '
    "table that they become. Lines of NDJSON then are rows of the table. Not for Arrow.",
)
_FILE_PARAMETERS = (_FILE_COLUMNS, *FILE_PARAMETERS[1:])
_SHOWN = members(
    {
        "id": {"type": "string"},
        "status": {"type": "string", "enum": ["open", "committed", "aborted"]},
        "state": {
            "type": ["integer", "null"],
            "description": "The state of the dataset that the commit of the upload created; null "
            "before it.",
        },
        "stage": {
            "type": ["string", "null"],
            "enum": ["unsorted", "remapped", "sorted", "merged", "authority", None],
            "description": "The stage that the upload's rows have reached.",
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
        "columns": {**FIELD_NAMES, "description": "All columns by default."},
        "filter": _FILTER,
        "group_by": {**FIELD_NAMES, "description": "[] aggregates all rows to one group."},
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
            "description": "Maximum age in seconds of committed uploads that the result may lack. "
            "0, the default: none are missing. `any`: only completely merged rows are read.",
        },
        "state": {"type": "integer", "description": "Exactly this state, while it is retained."},
        "as_of": {**_MOMENT, "description": "The newest state at that time."},
        "since": {
            "type": "integer",
            "description": "Not an earlier state than this one, such as the state of the previous "
            "response.",
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
        "state": {"type": "integer", "description": "The state that was queried."},
        "freshness_s": {
            "type": "number",
            "description": "Age of the oldest committed upload that is missing from the result; 0 "
            "if none is missing.",
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
        "first": {
            "type": ["integer", "null"],
            "description": "Number of the first upload that the stage contains.",
        },
        "last": {"type": ["integer", "null"]},
        "rows": {"type": "integer"},
        "bytes": {"type": "integer"},
        "lag_s": {
            "type": "number",
            "description": "Age of the oldest upload that has not reached this stage; 0 if all "
            "have.",
        },
        "rows_per_s": {
            "type": "number",
            "description": "Rows per second that reached this stage in the last minute.",
        },
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
        "authority_state": {
            "type": "integer",
            "description": "The newest completely merged state.",
        },
        "error": {
            "type": ["string", "null"],
            "description": "The error that stops the pipeline; null if there is none.",
        },
        "stages": members(
            {
                **dict.fromkeys(("unsorted", "sorted", "merged", "authority"), _STAGE),
                "remapped": {
                    **_STAGE,
                    "description": "Rows whose keys have ids but which are not sorted yet. Only "
                    "for datasets with ID-keys.",
                },
            },
            "unsorted",
            "sorted",
            "merged",
            "authority",
        ),
        "reads": {
            "type": "array",
            "description": "What a query would have to read at several freshnesses.",
            "items": members(
                {
                    "freshness": {"type": ["number", "string"]},
                    "state": {"type": "integer"},
                    "files": {"type": "object"},
                    "rows": {"type": "integer"},
                }
            ),
        },
        "uploads": {"type": "array", "description": "The newest uploads.", "items": _SHOWN},
        "iceberg": members(
            {
                "namespace": {
                    "type": "string",
                    "description": "Namespace of the dataset's tables in the Iceberg catalogue.",
                },
                "tag": {
                    "type": ["string", "null"],
                    "description": "Tag of the newest state in the Iceberg catalogue.",
                },
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
        "content": {
            "application/json": {"schema": _ROWS},
            ARROW: {"schema": _BINARY},
            PARQUET: {"schema": _BINARY},
            CSV: {"schema": {"type": "string"}},
            NDJSON: {"schema": {"type": "string"}},
        },
    }
}


OPERATIONS: tuple[HttpOperation[Call], ...] = (
    HttpOperation(
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
    HttpOperation(
        "GET",
        f"{ROOT}/pipeline",
        loaded("pipeline", "read"),
        described(
            "datasets_pipeline",
            TAG,
            "Read the progress of uploads",
            answers("200", _PIPELINE),
            parameters=(_DATASET,),
        ),
    ),
    HttpOperation(
        "POST",
        f"{ROOT}/uploads",
        loaded("uploads", "upload"),
        described(
            "datasets_upload",
            TAG,
            "Upload rows, or open an upload",
            {**answers("201", _SHOWN), **answers("200", _SHOWN)},
            body=_BODIES,
            parameters=(_DATASET, _ID, _TABLE, _OP, _OPEN, *_FILE_PARAMETERS),
        ),
    ),
    HttpOperation(
        "POST",
        f"{ROOT}/uploads:preview",
        loaded("uploads", "preview"),
        described(
            "datasets_upload_preview",
            TAG,
            "Preview an upload from the beginning of a file",
            answers("200", PREVIEW),
            body=FILES,
            parameters=(_DATASET, WHOLE, *FILE_PARAMETERS),
        ),
        is_read=True,
    ),
    HttpOperation(
        "GET",
        UPLOAD,
        loaded("uploads", "read"),
        described(
            "datasets_upload_read",
            TAG,
            "Read the status of an upload",
            answers("200", _SHOWN),
            parameters=(_DATASET, _UPLOAD),
        ),
    ),
    HttpOperation(
        "POST",
        f"{UPLOAD}:append",
        loaded("uploads", "append"),
        described(
            "datasets_upload_append",
            TAG,
            "Append rows to an open upload",
            answers("200", _SHOWN),
            body=_BODIES,
            parameters=(_DATASET, _UPLOAD, _TABLE, _OP, *_FILE_PARAMETERS),
        ),
    ),
    HttpOperation(
        "POST",
        f"{UPLOAD}:commit",
        loaded("uploads", "commit"),
        described(
            "datasets_upload_commit",
            TAG,
            "Commit an upload, which makes all of its rows visible",
            answers("200", _SHOWN),
            parameters=(_DATASET, _UPLOAD),
        ),
    ),
    HttpOperation(
        "POST",
        f"{UPLOAD}:abort",
        loaded("uploads", "abort"),
        described(
            "datasets_upload_abort",
            TAG,
            "Abort an open upload",
            answers("200", _SHOWN),
            parameters=(_DATASET, _UPLOAD),
        ),
    ),
    HttpOperation(
        "POST",
        f"{ROOT}/query",
        loaded("queries", "query"),
        described(
            "datasets_query",
            TAG,
            "Query rows with a given freshness",
            _ROWS_OR_ARROW,
            body={"application/json": _QUERY},
            parameters=(_DATASET,),
        ),
        is_read=True,
    ),
    HttpOperation(
        "POST",
        f"{ROOT}/sql",
        loaded("sql", "execute"),
        described(
            "datasets_sql",
            TAG,
            "Execute a SELECT statement with a given freshness",
            SQL_ANSWERS,
            body={"application/json": SQL_BODY},
            parameters=(_DATASET,),
        ),
        is_read=True,
    ),
)


add_to_openapi = adds(OPERATIONS)
