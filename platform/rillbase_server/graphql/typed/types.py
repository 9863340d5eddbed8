"""Converts shapes to GraphQL types.

Fields of documents are always nullable: documents may be older than their schema, and a missing
member must not fail the whole page. Inputs require what the schema requires.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from operator import methodcaller
from typing import Any, TypeAlias, cast

from graphql import (
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInputType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLScalarType,
)

from foundation.json_types import JsonObject, JsonValue
from rillbase_server.graphql.rows import READ
from rillbase_server.graphql.typed.shapes import (
    Choice,
    ListOf,
    RecordMember,
    RecordShape,
    ScalarKind,
    Shape,
)
from rillbase_server.graphql.typed.values import SCALARS, to_document

#: Types of values that may be null.
Readable: TypeAlias = "GraphQLObjectType | GraphQLList[Any] | GraphQLEnumType | GraphQLScalarType"
Nullable: TypeAlias = (
    "GraphQLInputObjectType | GraphQLList[Any] | GraphQLEnumType | GraphQLScalarType"
)


@dataclass(slots=True)
class TypeFactory:
    """Creates the types of one schema. A name is used once."""

    json: GraphQLScalarType
    _enums: dict[str, GraphQLEnumType] = field(default_factory=dict)

    def output(self, shape: Shape, name: str) -> Readable:
        """Return the output type."""
        if isinstance(shape, RecordShape):
            fields = {
                member.field: GraphQLField(
                    self.output(member.shape, name + _capital(member.field)),
                    resolve=_resolver(member),
                    description=member.description,
                    extensions={READ: _reader(member)},
                )
                for member in shape.members
            }
            return GraphQLObjectType(name, fields)
        if isinstance(shape, ListOf):
            return GraphQLList(self.output(shape.item, name))
        return self._leaf(shape, name)

    def input(self, shape: Shape, name: str) -> Nullable:
        """Return the input type."""
        if isinstance(shape, RecordShape):
            fields = {
                member.field: GraphQLInputField(
                    self._required_type(member, name), description=member.description
                )
                for member in shape.members
            }
            return GraphQLInputObjectType(f"{name}Input", fields)
        if isinstance(shape, ListOf):
            return GraphQLList(self.input(shape.item, name))
        return self._leaf(shape, name)

    def _required_type(self, member: RecordMember, name: str) -> GraphQLInputType:
        input_type = self.input(member.shape, name + _capital(member.field))
        return GraphQLNonNull(input_type) if member.required else input_type

    def _leaf(self, shape: Choice | ScalarKind, name: str) -> GraphQLEnumType | GraphQLScalarType:
        if isinstance(shape, Choice):
            enum_type = self._enums.get(name)
            if enum_type is None:
                values = {value: value for value in shape.values}
                enum_type = self._enums[name] = GraphQLEnumType(f"{name}Enum", values)
            return enum_type
        return SCALARS.get(shape, self.json)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _reader(member: RecordMember) -> Callable[[Mapping[str, JsonValue]], JsonValue]:
    """Return the reader of a field in an object of a document."""
    return methodcaller("get", member.name)


def _resolver(member: RecordMember) -> Callable[..., JsonValue]:
    read = _reader(member)
    return lambda source, _: read(source)


def written(shape: Shape, value: object) -> JsonValue:
    """Convert an input to the form of documents: their names, and wrapped dates and the like."""
    if value is None:
        return None
    if isinstance(shape, RecordShape):
        members = cast("Mapping[str, object]", value)
        document: JsonObject = {
            member.name: written(member.shape, members[member.field])
            for member in shape.members
            if member.field in members
        }
        return document
    if isinstance(shape, ListOf):
        return [written(shape.item, item) for item in cast("list[object]", value)]
    plain = cast("JsonValue", value)
    return to_document(shape, plain) if isinstance(shape, ScalarKind) else plain
