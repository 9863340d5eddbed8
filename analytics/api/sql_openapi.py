"""The OpenAPI description of SQL."""

from __future__ import annotations

from analytics.media_types import ARROW, CSV, NDJSON, PARQUET
from data_plane.http.openapi import members
from foundation.json_types import JsonObject

_BINARY: JsonObject = {"type": "string", "format": "binary"}
_TEXT: JsonObject = {"schema": {"type": "string"}}
_MOMENT: JsonObject = {"type": "string", "format": "date-time"}
SQL_BODY: JsonObject = members(
    {
        "sql": {
            "type": "string",
            "maxLength": 100_000,
            "description": "One SELECT statement over the tables and views of the dataset.",
            "example": "SELECT author, count(*) AS posts FROM posts WHERE id > $1 GROUP BY author",
        },
        "parameters": {
            "type": ["array", "object"],
            "description": "The values of `$1`, `$2`, … or `?`, or by name those of `$name`.",
            "example": [100],
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": 10_000_000,
            "description": "Maximum number of rows: 1,000 as JSON (at most 10,000), otherwise "
            "10,000,000.",
        },
        "timeout": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": 300,
            "default": 30,
            "description": "Seconds for the statement and the transfer of its result.",
        },
        "format": {
            "type": "string",
            "enum": ["json", "ndjson", "csv", "arrow", "parquet"],
            "description": "Takes precedence over the header `Accept`.",
        },
        "engine": {
            "type": "string",
            "enum": ["auto", "duckdb", "spark"],
            "default": "auto",
            "description": "What executes the statement. `auto`: Spark, if it reads more rows than "
            "the server's threshold and Spark can execute it; otherwise DuckDB.",
        },
        "freshness": {
            "type": ["number", "string"],
            "description": "Maximum age in seconds of committed uploads that the result may lack. "
            "0, the default: none are missing. `any`: only completely merged rows are read.",
        },
        "state": {"type": "integer", "description": "Exactly this state, while it is retained."},
        "as_of": {**_MOMENT, "description": "The newest state at that time."},
        "since": {"type": "integer", "description": "Not an earlier state than this one."},
    },
    "sql",
    closed=True,
)
_ROWS = members(
    {
        "state": {"type": "integer", "description": "The state that was queried."},
        "freshness_s": {
            "type": "number",
            "description": "Age of the oldest committed upload that is missing from the result; 0 "
            "if none is missing.",
        },
        "engine": {"type": "string", "description": "What has executed it: `duckdb` or `spark`."},
        "columns": {
            "type": "array",
            "items": members({"name": {"type": "string"}, "type": {"type": "string"}}),
        },
        "rows": {"type": "array", "items": {"type": "object"}},
        "truncated": {"type": "boolean", "description": "Whether the limit has cut off rows."},
    },
    "state",
    "freshness_s",
    "engine",
    "columns",
    "rows",
    "truncated",
)
SQL_ANSWERS: JsonObject = {
    "200": {
        "description": "Done",
        "content": {
            "application/json": {"schema": _ROWS},
            ARROW: {"schema": _BINARY},
            PARQUET: {"schema": _BINARY},
            CSV: _TEXT,
            NDJSON: _TEXT,
        },
    }
}
