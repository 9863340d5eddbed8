"""JSON Schemas of arguments: the server checks what assistants are shown."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from rillbase.errors import RillbaseError
from rillbase.shapes import Document

Schema: TypeAlias = dict[str, Any]
_TYPES: Mapping[str, Any] = {"string": str, "integer": int, "object": dict, "array": list}
#: The keywords that bound an integer, or the length of another value.
_BOUNDS = {
    "string": ("minLength", "maxLength"),
    "integer": ("minimum", "maximum"),
    "object": ("minProperties", "maxProperties"),
    "array": ("minItems", "maxItems"),
}


class InvalidArgument(RillbaseError):
    """An argument does not satisfy its schema."""

    def __init__(self, message: str) -> None:
        super().__init__("invalid_parameter", message)


def check_arguments(
    arguments: object, schemas: Mapping[str, Schema], required: tuple[str, ...]
) -> Document:
    """Return a tool's arguments if they satisfy their schemas."""
    if not isinstance(arguments, dict):
        raise InvalidArgument("`arguments` must be an object.")
    for name in required:
        if name not in arguments:
            raise InvalidArgument(f"`{name}` is required.")
    for name, value in arguments.items():
        if name not in schemas:
            raise InvalidArgument(f"There is no argument `{name[:80]}`.")
        _check(name, value, schemas[name])
    return arguments


def _check(name: str, value: Any, schema: Schema) -> None:
    kind = schema.get("type")
    if kind is None:
        return
    if not isinstance(value, _TYPES[kind]) or isinstance(value, bool):
        raise InvalidArgument(f"`{name}` must be of the type {kind}.")
    size = value if isinstance(value, int) else len(value)
    lower, upper = _BOUNDS[kind]
    if not schema.get(lower, size) <= size <= schema.get(upper, size):
        bounds = {bound: schema[bound] for bound in (lower, upper) if bound in schema}
        raise InvalidArgument(f"`{name}` must satisfy {json.dumps(bounds)}.")
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        raise InvalidArgument(f"`{name}` must match {schema['pattern']}.")
