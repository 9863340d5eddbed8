"""OpenAPI of files: their formats, the parameters that describe them, and previews."""

from __future__ import annotations

from data_plane.http.openapi import members, parameter
from documents.transfer.formats import CSV, JSON, NDJSON, PARQUET
from documents.transfer.output import EXPORT_FORMATS
from foundation.json_types import JsonObject

FILES: dict[str, JsonObject] = {
    NDJSON: {"type": "string", "description": "One document per line."},
    JSON: {"description": "An array of documents, or one document."},
    CSV: {"type": "string", "description": "RFC 4180, in UTF-8.", "example": "sku,price\nA1,9.5\n"},
    PARQUET: {"type": "string", "format": "binary", "description": "At most 256 MiB."},
}

FILE_PARAMETERS = (
    parameter(
        "columns",
        "query",
        {"type": "string"},
        description="A JSON array such as `[{"
        '"from":"Price","to":"price","type":"number"}]`: the columns to import, their fields, and '
        "the types of their texts: `string`, `number`, `boolean`, `date`, `json` or `objectId`. By "
        "default, all columns are imported, and the types of a CSV file are guessed from its first "
        "256 KiB.",
    ),
    parameter(
        "delimiter",
        "query",
        {"type": "string", "enum": [",", ";", "|", "tab"], "default": ","},
        description="For CSV.",
    ),
    parameter(
        "header",
        "query",
        {"type": "string", "enum": ["true", "false"], "default": "true"},
        description="For CSV: whether the first record has the names of the columns.",
    ),
)
WHOLE = parameter(
    "whole",
    "query",
    {"type": "string", "enum": ["true", "false"], "default": "false"},
    description="Whether the body is the whole file. Otherwise it is the beginning, whose last "
    "record may be incomplete; of a Parquet file it is the end, with the footer, and only the "
    "columns are returned.",
)
_ERROR = members(
    {
        "line": {"type": "integer", "description": "In Parquet the number of the row."},
        "column": {"type": "integer", "description": "In JSON, where the document begins."},
        "code": {"type": "string"},
        "detail": {"type": "string"},
        "pointer": {"type": "string"},
    },
    "line",
    "code",
    "detail",
    "pointer",
)
PREVIEW = members(
    {
        "delimiter": {"type": "string", "description": "For CSV; guessed unless it was given."},
        "columns": {
            "type": "array",
            "items": members(
                {
                    "name": {"type": "string"},
                    "to": {"type": "string", "description": "The field that it becomes."},
                    "type": {
                        "type": ["string", "null"],
                        "description": "The type that all values have; null for JSON and "
                        "Parquet, whose values have types.",
                    },
                    "values": {"type": "array", "items": {"type": "string"}},
                    "file_type": {
                        "type": "string",
                        "description": "The type that a Parquet file declares.",
                    },
                },
                "name",
                "to",
                "type",
                "values",
            ),
        },
        "rows": {"type": "integer", "description": "For Parquet: the rows of the whole file."},
        "documents": {
            "type": "array",
            "description": "The first documents, with the lines on which they begin.",
            "items": members({"line": {"type": "integer"}, "document": {"type": "object"}}),
        },
        "errors": {"type": "array", "items": _ERROR},
        "checked": {"type": "integer", "description": "The number of records that were checked."},
        "failed": {"type": "integer", "description": "How many of them would be refused."},
    },
    "columns",
    "documents",
    "errors",
    "checked",
    "failed",
)

OUTPUT_PARAMETERS = (
    parameter(
        "format",
        "query",
        {"type": "string", "enum": list(EXPORT_FORMATS), "default": "ndjson"},
        description="By default what the header `Accept` requests, if that is `text/csv`.",
    ),
    parameter(
        "fields",
        "query",
        {"type": "string"},
        description="For CSV: the paths of the columns, separated by commas. By default, the "
        "names of all fields, for which the documents are read twice.",
    ),
    parameter(
        "delimiter",
        "query",
        {"type": "string", "enum": [",", ";", "|", "tab"], "default": ","},
        description="For CSV.",
    ),
    parameter(
        "formulas",
        "query",
        {"type": "string", "enum": ["escape", "keep"], "default": "escape"},
        description="For CSV: whether texts that a spreadsheet would take for formulas get an "
        "apostrophe in front.",
    ),
)
EXPORTED: JsonObject = {
    "200": {
        "description": "The documents, as they are read",
        "content": {
            NDJSON: {"schema": {"type": "string"}},
            JSON: {"schema": {"type": "array", "items": {"type": "object"}}},
            CSV: {"schema": {"type": "string"}},
        },
    }
}
