"""What every operation of the API has in common, added to the generated OpenAPI document.

Views describe what is specific to them. Error responses, preconditions, idempotency keys, paging
parameters and the authentication methods are the same everywhere, so they are added here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from foundation.errors import CATALOGUE
from foundation.json_types import JsonObject, JsonValue

_METHODS = ("get", "post", "put", "patch", "delete")
_MUTATING = ("post", "put", "patch", "delete")

PROBLEM: JsonObject = {
    "type": "object",
    "description": "An error as defined by RFC 9457. `code` is stable.",
    "required": ["type", "title", "status", "code"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "request_id": {"type": "string"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["pointer", "code", "detail"],
                "properties": {
                    "pointer": {
                        "type": "string",
                        "description": "A JSON pointer or a parameter name.",
                    },
                    "code": {"type": "string"},
                    "detail": {"type": "string"},
                },
            },
        },
    },
}

_PARAMETERS: Mapping[str, JsonObject] = {
    "IdempotencyKey": {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "Repeating a call with the same key and body within 24 hours returns the "
        "first response and changes nothing.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[ -~]+$"},
    },
    "IfMatch": {
        "name": "If-Match",
        "in": "header",
        "description": "Change the resource only if it still has this version; otherwise the "
        "response is 412.",
        "schema": {"type": "string"},
        "example": '"v3"',
    },
    "Limit": {
        "name": "limit",
        "in": "query",
        "schema": {"type": "integer", "minimum": 1, "maximum": 200, "default": 50},
    },
    "Cursor": {
        "name": "cursor",
        "in": "query",
        "description": "The `next_cursor` of the previous page.",
        "schema": {"type": "string", "maxLength": 1000},
    },
}

SECURITY_SCHEMES: JsonObject = {
    "secretKey": {
        "type": "http",
        "scheme": "bearer",
        "description": "A secret API key (`rbk_…`) or a personal token (`rbt_…`).",
    },
    "publishableKey": {
        "type": "apiKey",
        "in": "header",
        "name": "Rillbase-Key",
        "description": "A publishable key (`rbp_…`), alone or with an end user's JWT as the "
        "bearer token.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "rillbase_session",
        "description": "A console session. Calls that change something also send `X-CSRF-Token`.",
    },
}


def add_common_parts(
    result: JsonObject, generator: object, request: object, public: object
) -> JsonObject:
    """Complete a generated document. The signature is the generator's."""
    components = _object(result.setdefault("components", {}))
    schemas = _object(components.setdefault("schemas", {}))
    codes: list[JsonValue] = []
    codes.extend(sorted(CATALOGUE))
    schemas["Problem"] = {**PROBLEM, "x-codes": codes}
    components["parameters"] = dict(_PARAMETERS)
    components["securitySchemes"] = SECURITY_SCHEMES
    components["responses"] = {
        "Problem": {
            "description": "An error",
            "content": {
                "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
            },
        }
    }
    for path, method, operation in _operations(result):
        _complete(path, method, operation)
    return result


def _operations(document: JsonObject) -> Iterator[tuple[str, str, JsonObject]]:
    for path, methods in _object(document["paths"]).items():
        for method, operation in _object(methods).items():
            if method in _METHODS:
                yield path, method, _object(operation)


def _complete(path: str, method: str, operation: JsonObject) -> None:
    responses = _object(operation["responses"])
    responses["default"] = {"$ref": "#/components/responses/Problem"}
    operation["security"] = _security(path)
    names: list[str] = []
    # The calls of the data plane declare it themselves: some of them read, with any method.
    if method in _MUTATING and not path.startswith("/v1/"):
        names.append("IdempotencyKey")
    if method in ("patch", "delete"):
        names.append("IfMatch")
    if str(operation["operationId"]).endswith("_list"):
        names += ["Limit", "Cursor"]
    parameters = operation.setdefault("parameters", [])
    if isinstance(parameters, list):
        parameters += [{"$ref": f"#/components/parameters/{name}"} for name in names]


def _security(path: str) -> list[JsonValue]:
    if path.startswith("/v1/"):
        return [{"secretKey": []}, {"publishableKey": []}, {"session": []}]
    if "/auth/" in path:
        return [{}]
    return [{"session": []}, {"secretKey": []}]


def _object(value: JsonValue) -> JsonObject:
    if not isinstance(value, dict):
        raise TypeError(f"expected an object in the OpenAPI document, got {type(value).__name__}")
    return value
