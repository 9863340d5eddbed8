"""Scalars, in documents and in GraphQL.

Documents are Extended JSON, which writes values that JSON cannot express as objects such as
`{"$date": "…"}`. In GraphQL, such values are strings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from graphql import (
    GraphQLBoolean,
    GraphQLError,
    GraphQLFloat,
    GraphQLInt,
    GraphQLScalarType,
    GraphQLString,
)

from foundation.json_types import JsonValue
from rillbase_server.graphql.typed.shapes import ScalarKind

_LEAST, _MOST = -(2**63), 2**63 - 1
_OBJECT_ID = re.compile(r"[0-9a-f]{24}\Z")

ToDocument: TypeAlias = Callable[[object], JsonValue]


def _integer(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise GraphQLError("Expected an integer.")
    if not _LEAST <= value <= _MOST:
        raise GraphQLError("Expected an integer of at most 64 bits.")
    return value


def _shown_whole(value: object) -> int:
    """Return an integer of a document; large integers, which some JSON parsers do not support,
    are wrapped.
    """
    if isinstance(value, dict) and value.keys() == {"$numberLong"}:
        return _integer(int(value["$numberLong"]))
    return _integer(value)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise GraphQLError("Expected a string.")
    return value


def _text_reader(member: str) -> Callable[[object], object]:
    """Return a reader of the text that Extended JSON wraps in an object."""

    def text(value: object) -> object:
        if isinstance(value, dict) and len(value) == 1 and member in value:
            number = value[member]
            return number if isinstance(number, str) else str(number)
        raise GraphQLError("The value does not have the type that the schema declares.")

    return text


def _object_id(value: object) -> str:
    if not isinstance(value, str) or not _OBJECT_ID.match(value):
        raise GraphQLError("Expected 24 hexadecimal digits.")
    return value


LONG = GraphQLScalarType(
    "Long",
    serialize=_shown_whole,
    parse_value=_integer,
    description="An integer of up to 64 bits.",
)
DATE_TIME = GraphQLScalarType(
    "DateTime",
    serialize=_text_reader("$date"),
    parse_value=_text,
    description="A time (RFC 3339).",
)
OBJECT_ID = GraphQLScalarType(
    "ObjectId",
    serialize=_text_reader("$oid"),
    parse_value=_object_id,
    description="An ObjectId, as 24 hexadecimal digits.",
)
DECIMAL = GraphQLScalarType(
    "Decimal",
    serialize=_text_reader("$numberDecimal"),
    parse_value=_text,
    description="A decimal number of up to 34 digits, as text.",
)

SCALARS: Mapping[ScalarKind, GraphQLScalarType] = {
    ScalarKind.STRING: GraphQLString,
    ScalarKind.INT: GraphQLInt,
    ScalarKind.LONG: LONG,
    ScalarKind.FLOAT: GraphQLFloat,
    ScalarKind.BOOLEAN: GraphQLBoolean,
    ScalarKind.DATE_TIME: DATE_TIME,
    ScalarKind.OBJECT_ID: OBJECT_ID,
    ScalarKind.DECIMAL: DECIMAL,
}

_MEMBERS: Mapping[ScalarKind, str] = {
    ScalarKind.DATE_TIME: "$date",
    ScalarKind.OBJECT_ID: "$oid",
    ScalarKind.DECIMAL: "$numberDecimal",
}


def to_document(plain: ScalarKind, value: JsonValue) -> JsonValue:
    """Convert a value to the form of documents."""
    member = _MEMBERS.get(plain)
    return value if member is None or value is None else {member: value}
