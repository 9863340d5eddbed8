"""The part of a JSON Schema that GraphQL can express. Everything else becomes the type JSON:
alternatives, tuples, maps, and deep nesting. Nothing of a document is hidden or rejected because
its schema cannot be expressed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias, Union

from documents.collections import field_names as names
from foundation.json_types import JsonValue

MAX_DEPTH = 8
MAX_MEMBERS = 200
MAX_CHOICES = 100
_INT32 = (-(2**31), 2**31 - 1)

Schema: TypeAlias = Mapping[str, JsonValue]
Resolve: TypeAlias = Callable[[str], Schema]


class ScalarKind(Enum):
    """The kinds of scalar values."""

    STRING = "String"
    INT = "Int"
    LONG = "Long"
    FLOAT = "Float"
    BOOLEAN = "Boolean"
    DATE_TIME = "DateTime"
    OBJECT_ID = "ObjectId"
    DECIMAL = "Decimal"
    JSON = "JSON"


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several strings, each a valid name."""

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListOf:
    """Values of one shape."""

    item: Shape


@dataclass(frozen=True, slots=True)
class RecordMember:
    """A property, with its name in documents and in GraphQL."""

    name: str
    field: str
    shape: Shape
    required: bool
    description: str | None


@dataclass(frozen=True, slots=True)
class RecordShape:
    """An object with known members."""

    members: tuple[RecordMember, ...]


Shape: TypeAlias = Union[ScalarKind, Choice, ListOf, RecordShape]  # noqa: UP007 -- recursive

_BY_TYPE: Mapping[str, ScalarKind] = {
    "string": ScalarKind.STRING,
    "integer": ScalarKind.LONG,
    "number": ScalarKind.FLOAT,
    "boolean": ScalarKind.BOOLEAN,
    "bool": ScalarKind.BOOLEAN,
    "int": ScalarKind.INT,
    "long": ScalarKind.LONG,
    "double": ScalarKind.FLOAT,
    "date": ScalarKind.DATE_TIME,
    "objectId": ScalarKind.OBJECT_ID,
    "decimal": ScalarKind.DECIMAL,
}


def shape_of(schema: Schema, resolve: Resolve | None = None, depth: int = 0) -> Shape:
    """Return the shape of the values that a schema allows."""
    reference = schema.get("$ref")
    if isinstance(reference, str):
        if resolve is None:
            return ScalarKind.JSON
        return shape_of(resolve(reference), resolve, depth)
    if any(word in schema for word in ("oneOf", "anyOf", "not")):
        return ScalarKind.JSON
    alike = schema.get("allOf")
    if isinstance(alike, list):
        only = alike[0] if len(alike) == 1 else None
        return shape_of(only, resolve, depth) if isinstance(only, dict) else ScalarKind.JSON
    if "enum" in schema:
        return _choice(schema["enum"])
    kind = _kind(schema)
    if kind == "object":
        return _record(schema, resolve, depth)
    if kind == "array":
        items = schema.get("items")
        return (
            ListOf(shape_of(items, resolve, depth)) if isinstance(items, dict) else ScalarKind.JSON
        )
    if kind == "integer" and _fits_32_bits(schema):
        return ScalarKind.INT
    return _BY_TYPE.get(kind, ScalarKind.JSON)


def _kind(schema: Schema) -> str:
    """Return the one type besides null, or nothing."""
    declared = schema.get("bsonType", schema.get("type"))
    kinds = declared if isinstance(declared, list) else [declared]
    others = [kind for kind in kinds if kind != "null"]
    if set(map(str, others)) == {"int", "long"}:
        return "long"
    if len(others) != 1:
        return "object" if declared is None and "properties" in schema else ""
    return str(others[0])


def _choice(values: JsonValue) -> Shape:
    texts = [value for value in values if value is not None] if isinstance(values, list) else []
    if not all(isinstance(text, str) for text in texts):
        return ScalarKind.JSON
    choices = tuple(str(text) for text in texts)
    reserved = {"true", "false", "null"}
    if len(choices) > MAX_CHOICES or not all(
        names.is_name(text) and text not in reserved for text in choices
    ):
        return ScalarKind.STRING
    return Choice(choices) if choices else ScalarKind.JSON


def _record(schema: Schema, resolve: Resolve | None, depth: int) -> Shape:
    properties = schema.get("properties")
    if not isinstance(properties, dict) or not 0 < len(properties) <= MAX_MEMBERS:
        return ScalarKind.JSON
    if depth >= MAX_DEPTH or names.clash(properties) is not None:
        return ScalarKind.JSON
    listed = schema.get("required")
    required: Sequence[JsonValue] = listed if isinstance(listed, list) else ()
    members = tuple(
        RecordMember(
            name=name,
            field=names.escaped(name),
            shape=shape_of(declared, resolve, depth + 1),
            required=name in required,
            description=_text(declared.get("description")),
        )
        for name, declared in properties.items()
        if isinstance(declared, dict)
    )
    return RecordShape(members) if members else ScalarKind.JSON


def _text(value: JsonValue) -> str | None:
    return value if isinstance(value, str) else None


def _fits_32_bits(schema: Schema) -> bool:
    least, most = schema.get("minimum"), schema.get("maximum")
    return (
        isinstance(least, int)
        and isinstance(most, int)
        and least >= _INT32[0]
        and most <= _INT32[1]
    )
