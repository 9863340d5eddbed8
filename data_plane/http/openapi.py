"""Builds the OpenAPI objects of the data plane's calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from data_plane.http.operation import HttpOperation
from foundation.json_types import JsonObject, JsonValue
from foundation.names import NAME_PATTERN

C = TypeVar("C")
Hook = Callable[[JsonObject, object, object, object], JsonObject]

EJSON_PARAMETER: JsonObject = {
    "name": "Rillbase-EJSON",
    "in": "header",
    "schema": {"type": "string", "enum": ["relaxed", "canonical"]},
}
#: The same as a parameter of an event stream, because an EventSource sends no headers.
EJSON_IN_ADDRESS: JsonObject = {**EJSON_PARAMETER, "name": "ejson", "in": "query"}

IDEMPOTENCY_KEY: JsonObject = {"$ref": "#/components/parameters/IdempotencyKey"}

#: An array of names of fields.
FIELD_NAMES: JsonObject = {"type": "array", "items": {"type": "string"}}


def members(properties: JsonObject, *required: str, closed: bool = False) -> JsonObject:
    """Describe an object. `closed`: other members are rejected."""
    schema: JsonObject = {"type": "object", "properties": properties}
    if closed:
        schema["additionalProperties"] = False
    if required:
        schema["required"] = list(required)
    return schema


def parameter(name: str, where: str, schema: JsonObject, **more: JsonValue) -> JsonObject:
    return {"name": name, "in": where, "schema": schema, **more}


def name_parameter(kind: str, example: str) -> JsonObject:
    """Describe the path parameter that contains the name of a resource."""
    schema: JsonObject = {"type": "string", "pattern": f"^{NAME_PATTERN}$"}
    return parameter(kind, "path", schema, required=True, example=example)


def answers(status: str, schema: JsonObject | None) -> JsonObject:
    """Describe the response to a successful call."""
    answer: JsonObject = {"description": "Done"}
    if schema is not None:
        answer["content"] = {"application/json": {"schema": schema}}
    return {status: answer}


def described(
    name: str,
    tag: str,
    summary: str,
    responses: JsonObject,
    *,
    body: Mapping[str, JsonObject] | None = None,
    parameters: Iterable[JsonObject] = (),
) -> JsonObject:
    """Describe a call. `body` has a schema for each media type."""
    declared: list[JsonValue] = [*parameters, EJSON_PARAMETER]
    operation: JsonObject = {
        "operationId": name,
        "tags": [tag],
        "summary": summary,
        "parameters": declared,
        "responses": responses,
    }
    if body is not None:
        content: JsonObject = {kind: {"schema": schema} for kind, schema in body.items()}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def adds(operations: Iterable[HttpOperation[C]]) -> Hook:
    """Return a hook that adds calls to the generated document."""
    return adds_calls(*((call.method, call.path, _complete(call)) for call in operations))


def _complete(call: HttpOperation[C]) -> JsonObject:
    """Add the idempotency key to the description of a call that changes something."""
    declared = call.describes.get("parameters")
    if call.is_read or call.method == "GET" or not isinstance(declared, list):
        return call.describes
    return {**call.describes, "parameters": [*declared, IDEMPOTENCY_KEY]}


def adds_calls(*calls: tuple[str, str, JsonObject]) -> Hook:
    """Return a hook that adds calls by method, path and description. Its signature is the
    generator's.
    """

    def add_to_openapi(
        result: JsonObject, generator: object, request: object, public: object
    ) -> JsonObject:
        paths = result.setdefault("paths", {})
        if isinstance(paths, dict):
            for method, path, description in calls:
                operations = paths.setdefault(path, {})
                if isinstance(operations, dict):
                    operations[method.lower()] = description
        return result

    return add_to_openapi
