"""Every call of the data plane of documents, with its place in the OpenAPI document."""

from __future__ import annotations

from data_plane.calls import Call
from data_plane.http import HttpOperation
from data_plane.http.openapi import adds, answers, described, members, name_parameter, parameter
from documents.api import bulk, by_filter, documents, queries, transfer
from documents.api.transfer_openapi import (
    EXPORTED,
    FILE_PARAMETERS,
    FILES,
    OUTPUT_PARAMETERS,
    PREVIEW,
    WHOLE,
)
from documents.transfer.formats import CSV, NDJSON, PARQUET
from foundation.json_types import JsonObject

ROOT = "/v1/collections/{collection}"

_ENVELOPE: JsonObject = {
    "type": "object",
    "required": ["id", "version", "created_at", "updated_at", "document"],
    "properties": {
        "id": {"description": "The document's `_id`, as Extended JSON."},
        "version": {"type": "integer"},
        "created_at": {"type": "string", "format": "date-time"},
        "updated_at": {"type": "string", "format": "date-time"},
        "document": {"type": "object"},
    },
    "example": {
        "id": {"$oid": "6740a1b2c3d4e5f601234567"},
        "version": 3,
        "created_at": "2026-11-21T08:00:00.000Z",
        "updated_at": "2026-11-21T08:05:00.000Z",
        "document": {"_id": {"$oid": "6740a1b2c3d4e5f601234567"}, "title": "Buy milk"},
    },
}
_DOCUMENT: JsonObject = {
    "type": "object",
    "description": "Extended JSON v2, canonical or relaxed.",
    "example": {"title": "Buy milk", "rank": 1, "done": False},
}
FILTER: JsonObject = {
    "type": "object",
    "description": "A filter in MongoDB's query language.",
    "example": {"done": False, "rank": {"$lt": 10}},
}
SORT: JsonObject = {
    "description": '`[["field", 1], …]` or `{"field": 1}`. `$created` and `$updated` stand for the '
    "times at which documents were created and last changed. Ties are broken by `_id`.",
    "oneOf": [
        {"type": "array", "items": {"type": "array"}},
        {"type": "object", "additionalProperties": {"type": "integer"}},
    ],
    "example": [["rank", 1]],
}
_UPDATE: JsonObject = {
    "type": "object",
    "description": "Update operators.",
    "example": {"$set": {"done": True}},
}
_IDS: JsonObject = {"type": "array", "maxItems": 1000, "items": {}, "example": ["a", "b"]}
GROUP: JsonObject = {
    "type": "object",
    "description": "One row for all documents with the same values. Null: no grouping.",
    "additionalProperties": False,
    "properties": {
        "by": {"type": "array", "maxItems": 8, "items": {"type": "string"}},
        "measures": {
            "type": "object",
            "maxProperties": 32,
            "additionalProperties": {
                "type": "object",
                "required": ["op"],
                "additionalProperties": False,
                "properties": {
                    "op": {"type": "string", "enum": ["count", "sum", "avg", "min", "max"]},
                    "field": {"type": "string"},
                },
            },
        },
    },
    "example": {"by": ["done"], "measures": {"todos": {"op": "count"}}},
}
LOOKUP: JsonObject = {
    "type": "array",
    "minItems": 1,
    "maxItems": 8,
    "items": {
        "type": "object",
        "required": ["from", "local", "as"],
        "additionalProperties": False,
        "properties": {
            "from": {"type": "string"},
            "local": {"type": "string"},
            "as": {"type": "string"},
        },
    },
    "example": [{"from": "users", "local": "owner", "as": "user"}],
}
_QUERY: JsonObject = {
    "filter": FILTER,
    "sort": SORT,
    "projection": {"type": "object", "example": {"title": 1}},
    "offset": {"type": "integer", "minimum": 0, "maximum": 100_000, "default": 0},
    "limit": {"type": "integer", "minimum": 1, "maximum": 10_000, "default": 100},
    "cursor": {"type": ["string", "null"], "maxLength": 65_536},
    "group": GROUP,
    "lookup": LOOKUP,
}
_NOTICES: JsonObject = {
    "type": "array",
    "description": "Omitted if empty. Documents that could not be evaluated are missing from the "
    "result.",
    "items": {
        "type": "object",
        "required": ["code", "count", "detail"],
        "properties": {
            "code": {"type": "string", "example": "documents_not_evaluated"},
            "count": {"type": "integer", "minimum": 1},
            "detail": {"type": "string"},
        },
    },
}
_PAGE: JsonObject = {
    "type": "object",
    "required": ["items", "next_cursor"],
    "properties": {
        "items": {"type": "array", "items": _ENVELOPE},
        "next_cursor": {"type": ["string", "null"]},
        "notices": _NOTICES,
    },
}
_GROUPS: JsonObject = {
    "type": "object",
    "required": ["rows"],
    "properties": {
        "rows": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id", "version", "document"],
                "properties": {
                    "id": {"type": "object", "description": "The values of the `by` fields."},
                    "version": {"type": "null"},
                    "document": {"type": "object"},
                },
            },
        },
        "notices": _NOTICES,
    },
}
_FOUND: JsonObject = {"oneOf": [_PAGE, _GROUPS]}
_FOUND_OR_FILE: JsonObject = {
    "200": {
        "description": "Done. With `Accept: text/csv`, `application/x-ndjson` or "
        "`application/vnd.apache.parquet`, a file of the documents or groups.",
        "content": {
            "application/json": {"schema": _FOUND},
            CSV: {"schema": {"type": "string"}},
            NDJSON: {"schema": {"type": "string"}},
            PARQUET: {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
_RESULTS: JsonObject = {
    "type": "object",
    "required": ["results"],
    "properties": {
        "results": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "id": {},
                    "version": {"type": "integer"},
                    "error": {"$ref": "#/components/schemas/Problem"},
                },
            },
        }
    },
}
_OPERATION: JsonObject = {
    "type": "object",
    "properties": {
        "insert": _DOCUMENT,
        "replace": {"type": "object"},
        "update": {"type": "object"},
        "delete": {"type": "object"},
        "if_version": {"type": "integer"},
    },
    "example": {"insert": {"title": "Buy milk"}},
}
_JOB: JsonObject = {
    "type": "object",
    "required": ["id", "mode", "state", "lines", "written", "skipped", "failed", "errors"],
    "properties": {
        "id": {"type": "string", "format": "uuid"},
        "mode": {"type": "string"},
        "state": {"type": "string", "enum": ["running", "interrupted", "done"]},
        "lines": {"type": "integer", "description": "Number of lines processed."},
        "written": {"type": "integer"},
        "skipped": {"type": "integer"},
        "failed": {"type": "integer"},
        "errors": {"type": "array", "items": {"type": "object"}},
    },
}
_COUNTS: JsonObject = {
    "type": "object",
    "required": ["matched", "changed", "complete"],
    "properties": {
        "matched": {"type": "integer"},
        "changed": {"type": "integer"},
        "complete": {
            "type": "boolean",
            "description": "False if the time ran out before all "
            "matching documents were changed; call again.",
        },
        "notices": _NOTICES,
    },
}


def _closed(properties: JsonObject, *required: str) -> JsonObject:
    return members(properties, *required, closed=True)


COLLECTION_PARAMETER = name_parameter("collection", "todos")
_ID = parameter(
    "id",
    "path",
    {"type": "string", "minLength": 1},
    required=True,
    description="24 hexadecimal digits are an ObjectId; `~` starts URL-encoded Extended JSON; "
    "anything else is the string itself.",
)


def _describe(
    name: str,
    summary: str,
    responses: JsonObject,
    *,
    body: dict[str, JsonObject] | None = None,
    parameters: tuple[JsonObject, ...] = (COLLECTION_PARAMETER,),
) -> JsonObject:
    return described(name, "Documents", summary, responses, body=body, parameters=parameters)


def _json(schema: JsonObject) -> dict[str, JsonObject]:
    return {"application/json": schema}


_BULK = _closed(
    {
        "operations": {"type": "array", "maxItems": 10_000, "items": _OPERATION},
        "ordered": {"type": "boolean", "default": True},
    },
    "operations",
)
_UPSERT = parameter("upsert", "query", {"type": "boolean", "default": False})
_URL_QUERY = tuple(
    parameter(name, "query", {"type": kind})
    for name, kind in (
        ("filter", "string"),
        ("sort", "string"),
        ("projection", "string"),
        ("offset", "integer"),
        ("limit", "integer"),
        ("cursor", "string"),
        ("group", "string"),
        ("lookup", "string"),
    )
)

OPERATIONS: tuple[HttpOperation[Call], ...] = (
    HttpOperation(
        "POST",
        f"{ROOT}/documents",
        documents.insert,
        _describe(
            "documents_insert",
            "Insert a document",
            answers("201", _ENVELOPE),
            body=_json(_DOCUMENT),
        ),
    ),
    HttpOperation(
        "GET",
        f"{ROOT}/documents",
        queries.query_by_url,
        _describe(
            "documents_query_by_url",
            "Query by URL",
            answers("200", _FOUND),
            parameters=(COLLECTION_PARAMETER, *_URL_QUERY),
        ),
    ),
    HttpOperation(
        "GET",
        f"{ROOT}/documents/{{id}}",
        documents.get,
        _describe(
            "documents_get",
            "Read a document",
            {**answers("200", _ENVELOPE), **answers("304", None)},
            parameters=(COLLECTION_PARAMETER, _ID),
        ),
    ),
    HttpOperation(
        "PUT",
        f"{ROOT}/documents/{{id}}",
        documents.replace,
        _describe(
            "documents_replace",
            "Create or replace a document",
            {**answers("200", _ENVELOPE), **answers("201", _ENVELOPE)},
            body=_json(_DOCUMENT),
            parameters=(COLLECTION_PARAMETER, _ID),
        ),
    ),
    HttpOperation(
        "PATCH",
        f"{ROOT}/documents/{{id}}",
        documents.update,
        _describe(
            "documents_update",
            "Update a document with operators or a merge patch",
            {**answers("200", _ENVELOPE), **answers("201", _ENVELOPE)},
            body={**_json(_UPDATE), documents.MERGE_PATCH: _DOCUMENT},
            parameters=(COLLECTION_PARAMETER, _ID, _UPSERT),
        ),
    ),
    HttpOperation(
        "DELETE",
        f"{ROOT}/documents/{{id}}",
        documents.delete,
        _describe(
            "documents_delete",
            "Delete a document",
            answers("204", None),
            parameters=(COLLECTION_PARAMETER, _ID),
        ),
    ),
    HttpOperation(
        "POST",
        f"{ROOT}/documents:get",
        documents.get_many,
        _describe(
            "documents_get_many",
            "Read documents by id",
            answers("200", _closed({"items": {"type": "array", "items": _ENVELOPE}})),
            body=_json(_closed({"ids": _IDS}, "ids")),
        ),
        is_read=True,
    ),
    HttpOperation(
        "POST",
        f"{ROOT}/documents:bulk",
        bulk.bulk,
        _describe(
            "documents_bulk",
            "Change many documents, all or none unless `ordered` is false",
            answers("200", _RESULTS),
            body={**_json(_BULK), NDJSON: {"type": "string"}},
        ),
    ),
    HttpOperation(
        "POST",
        f"{ROOT}/documents:update",
        by_filter.update,
        _describe(
            "documents_update_by_filter",
            "Update matching documents",
            answers("200", _COUNTS),
            body=_json(
                _closed(
                    {
                        "filter": FILTER,
                        "update": _UPDATE,
                        "array_filters": {"type": "array", "items": {"type": "object"}},
                        "limit": {"type": "integer", "minimum": 1},
                    },
                    "filter",
                    "update",
                )
            ),
        ),
    ),
    HttpOperation(
        "POST",
        f"{ROOT}/documents:delete",
        by_filter.delete,
        _describe(
            "documents_delete_by_filter",
            "Delete matching documents",
            answers("200", _COUNTS),
            body=_json(
                _closed({"filter": FILTER, "limit": {"type": "integer", "minimum": 1}}, "filter")
            ),
        ),
    ),
    HttpOperation(
        "POST",
        f"{ROOT}/query",
        queries.query,
        _describe("query", "Query", _FOUND_OR_FILE, body=_json(_closed(_QUERY))),
        is_read=True,
    ),
    HttpOperation(
        "POST",
        f"{ROOT}/count",
        queries.count,
        _describe(
            "count",
            "Count matching documents",
            answers("200", _closed({"count": {"type": "integer"}, "notices": _NOTICES}, "count")),
            body=_json(_closed({"filter": FILTER})),
        ),
        is_read=True,
    ),
    HttpOperation(
        "POST",
        f"{ROOT}/explain",
        queries.explain,
        _describe(
            "explain",
            "Explain how a query is executed",
            answers("200", {"type": "object"}),
            body=_json(_closed(_QUERY)),
        ),
        is_read=True,
    ),
    HttpOperation(
        "POST",
        f"{ROOT}/import",
        transfer.import_file,
        _describe(
            "import",
            "Import documents from NDJSON, JSON or CSV",
            answers("200", _JOB),
            body=FILES,
            parameters=(
                COLLECTION_PARAMETER,
                parameter("mode", "query", {"type": "string", "enum": list(transfer.MODES)}),
                parameter("resume", "query", {"type": "string", "format": "uuid"}),
                *FILE_PARAMETERS,
            ),
        ),
    ),
    HttpOperation(
        "POST",
        f"{ROOT}/import:preview",
        transfer.preview_import,
        _describe(
            "import_preview",
            "Preview an import from the beginning of a file",
            answers("200", PREVIEW),
            body=FILES,
            parameters=(COLLECTION_PARAMETER, WHOLE, *FILE_PARAMETERS),
        ),
        is_read=True,
    ),
    HttpOperation(
        "GET",
        f"{ROOT}/imports",
        transfer.imports,
        _describe(
            "imports_list",
            "List imports, newest first",
            answers(
                "200",
                _closed(
                    {
                        "items": {"type": "array", "items": _JOB},
                        "next_cursor": {"type": ["string", "null"]},
                    },
                    "items",
                    "next_cursor",
                ),
            ),
        ),
    ),
    HttpOperation(
        "GET",
        f"{ROOT}/imports/{{id}}",
        transfer.import_status,
        _describe(
            "imports_get",
            "Read the progress of an import",
            answers("200", _JOB),
            parameters=(
                COLLECTION_PARAMETER,
                parameter("id", "path", {"type": "string"}, required=True),
            ),
        ),
    ),
    HttpOperation(
        "GET",
        f"{ROOT}/export",
        transfer.export,
        _describe(
            "export",
            "Export documents as NDJSON, JSON or CSV",
            EXPORTED,
            parameters=(
                COLLECTION_PARAMETER,
                parameter("filter", "query", {"type": "string"}),
                *OUTPUT_PARAMETERS,
            ),
        ),
    ),
    HttpOperation(
        "POST",
        "/v1/transactions",
        bulk.transact,
        _describe(
            "transact",
            "Change documents of several collections atomically",
            answers("200", _RESULTS),
            body=_json(
                _closed(
                    {"operations": {"type": "array", "maxItems": 500, "items": _OPERATION}},
                    "operations",
                )
            ),
            parameters=(),
        ),
    ),
)


add_to_openapi = adds(OPERATIONS)
