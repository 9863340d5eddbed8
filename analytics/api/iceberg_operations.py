"""The calls of the Iceberg REST catalogue, and of the S3-compatible files that it names."""

from __future__ import annotations

from analytics.api.loading import loaded
from data_plane.calls import Call
from data_plane.http import HttpOperation
from data_plane.http.openapi import adds, answers, described, members, name_parameter, parameter
from foundation.json_types import JsonObject

CONFIG = "/v1/iceberg/v1/config"
NAMESPACES = "/v1/iceberg/v1/{tenant}/namespaces"
TABLES = f"{NAMESPACES}/{{namespace}}/tables"
#: The path of the endpoint of S3.
FILES = "/v1/iceberg/files"
TAG = "Iceberg"

_TENANT = parameter("tenant", "path", {"type": "string"}, required=True, example="acme")
_NAMESPACE = name_parameter("namespace", "posts")
_TABLE = parameter("table", "path", {"type": "string"}, required=True, example="posts__by_author")
_PAGES = (
    parameter(
        "pageToken",
        "query",
        {"type": "string"},
        description="Empty for the first page. Without it, there is one page with everything.",
    ),
    parameter("pageSize", "query", {"type": "integer", "minimum": 1, "maximum": 1_000}),
)
_NAMES: JsonObject = {"type": "array", "items": {"type": "string"}}
_NEXT: JsonObject = {"type": "string"}

CATALOGUE: tuple[HttpOperation[Call], ...] = (
    HttpOperation(
        "GET",
        CONFIG,
        loaded("iceberg_catalogue", "config"),
        described(
            "iceberg_config",
            TAG,
            "Read the configuration of the catalogue",
            answers(
                "200",
                members(
                    {
                        "defaults": {"type": "object"},
                        "overrides": {"type": "object"},
                        "endpoints": _NAMES,
                    },
                    "defaults",
                    "overrides",
                    "endpoints",
                ),
            ),
        ),
    ),
    HttpOperation(
        "GET",
        NAMESPACES,
        loaded("iceberg_catalogue", "namespaces"),
        described(
            "iceberg_namespaces",
            TAG,
            "List the datasets",
            answers(
                "200",
                members(
                    {"namespaces": {"type": "array", "items": _NAMES}, "next-page-token": _NEXT},
                    "namespaces",
                ),
            ),
            parameters=(
                _TENANT,
                parameter("parent", "query", {"type": "string"}),
                *_PAGES,
            ),
        ),
    ),
    HttpOperation(
        "GET",
        f"{NAMESPACES}/{{namespace}}",
        loaded("iceberg_catalogue", "namespace"),
        described(
            "iceberg_namespace",
            TAG,
            "Read a dataset",
            answers(
                "200",
                members(
                    {"namespace": _NAMES, "properties": {"type": "object"}},
                    "namespace",
                    "properties",
                ),
            ),
            parameters=(_TENANT, _NAMESPACE),
        ),
    ),
    HttpOperation(
        "GET",
        TABLES,
        loaded("iceberg_catalogue", "tables"),
        described(
            "iceberg_tables",
            TAG,
            "List the tables and views of a dataset",
            answers(
                "200",
                members(
                    {
                        "identifiers": {
                            "type": "array",
                            "items": members(
                                {"namespace": _NAMES, "name": {"type": "string"}},
                                "namespace",
                                "name",
                            ),
                        },
                        "next-page-token": _NEXT,
                    },
                    "identifiers",
                ),
            ),
            parameters=(_TENANT, _NAMESPACE, *_PAGES),
        ),
    ),
    HttpOperation(
        "GET",
        f"{TABLES}/{{table}}",
        loaded("iceberg_catalogue", "table"),
        described(
            "iceberg_table",
            TAG,
            "Read the metadata of a table",
            answers(
                "200",
                members(
                    {
                        "metadata-location": {"type": "string"},
                        "metadata": {"type": "object"},
                        "config": {
                            "type": "object",
                            "description": "Credentials for the table's files, valid for an hour. "
                            "Empty if the files are in an object store.",
                        },
                    },
                    "metadata-location",
                    "metadata",
                ),
            ),
            parameters=(_TENANT, _NAMESPACE, _TABLE),
        ),
    ),
)
#: Requests of S3, which are not described in OpenAPI.
FILE_OPERATIONS: tuple[HttpOperation[Call], ...] = (
    HttpOperation(
        "GET", f"{FILES}/{{dataset}}/authority/{{file}}", loaded("iceberg_files", "rows"), {}
    ),
    HttpOperation(
        "GET",
        f"{FILES}/{{dataset}}/iceberg/{{table}}/metadata/{{file}}",
        loaded("iceberg_files", "metadata"),
        {},
    ),
)

add_to_openapi = adds(CATALOGUE)
