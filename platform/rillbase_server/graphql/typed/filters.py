"""Inputs for filters and sorts, and their translation to the query language."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

from graphql import (
    GraphQLBoolean,
    GraphQLEnumType,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInt,
    GraphQLList,
    GraphQLNonNull,
    GraphQLScalarType,
    GraphQLString,
)

from foundation.json_types import JsonObject, JsonValue
from rillbase_server.graphql.typed.shapes import (
    Choice,
    ListOf,
    RecordMember,
    RecordShape,
    ScalarKind,
    Shape,
)
from rillbase_server.graphql.typed.types import TypeFactory, written

ORDERED = frozenset(
    {
        ScalarKind.STRING,
        ScalarKind.INT,
        ScalarKind.LONG,
        ScalarKind.FLOAT,
        ScalarKind.DATE_TIME,
        ScalarKind.DECIMAL,
    }
    | {ScalarKind.OBJECT_ID}
)
_LOGIC = {"and": "$and", "or": "$or", "nor": "$nor"}
_OPERATORS = {
    "eq": "$eq",
    "ne": "$ne",
    "in": "$in",
    "nin": "$nin",
    "gt": "$gt",
    "gte": "$gte",
    "lt": "$lt",
    "lte": "$lte",
}

#: Times of a document that a sort may use, by the names that they have in results.
_TIMES = {"createdAt": "$created", "updatedAt": "$updated"}
DIRECTION = GraphQLEnumType("SortDirection", {"ASC": 1, "DESC": -1})


@dataclass(slots=True)
class FilterInputs:
    """Creates the filter inputs of one schema. Those of scalars are shared by all collections."""

    types: TypeFactory
    _shared: dict[str, GraphQLInputObjectType] = field(default_factory=dict)

    def of_record(
        self, shape: RecordShape, name: str, *, nested: bool = False
    ) -> GraphQLInputObjectType:
        """Return the filter of objects: a field for each member, and logical operators. A member
        whose name is that of a logical operator has no field; `match` covers it.
        """

        def fields() -> dict[str, GraphQLInputField]:
            input_fields = {
                member.field: GraphQLInputField(
                    self._of(member.shape, name + member.field[:1].upper() + member.field[1:])
                )
                for member in shape.members
                if member.field not in _LOGIC and member.field != "match"
            }
            many = GraphQLList(GraphQLNonNull(input_type))
            input_fields |= {word: GraphQLInputField(many) for word in _LOGIC}
            if not nested:
                input_fields["match"] = GraphQLInputField(
                    self.types.json, description="A filter in the query language."
                )
            return input_fields

        input_type = GraphQLInputObjectType(f"{name}Filter", fields)
        return input_type

    def _of(self, shape: Shape, name: str) -> GraphQLInputObjectType:
        if isinstance(shape, RecordShape):
            return self.of_record(shape, name, nested=True)
        if isinstance(shape, ListOf):
            return self._of_list(shape, name)
        return self._of_leaf(shape, name)

    def _of_list(self, shape: ListOf, name: str) -> GraphQLInputObjectType:
        """Return the filter of lists, which match if one of their values matches."""
        fields: dict[str, GraphQLInputField] = {
            "size": GraphQLInputField(GraphQLInt),
            "exists": GraphQLInputField(GraphQLBoolean),
        }
        if isinstance(shape.item, RecordShape):
            some = self.of_record(shape.item, name)
            fields["some"] = GraphQLInputField(
                some, description="One of the elements matches all of this."
            )
        elif not isinstance(shape.item, ListOf):
            leaf = self.types.input(shape.item, name)
            many = GraphQLList(GraphQLNonNull(leaf))
            fields["has"] = GraphQLInputField(leaf, description="One of the elements equals this.")
            fields["all"] = GraphQLInputField(many, description="Each of these is an element.")
            fields["any"] = GraphQLInputField(
                many, description="One of the elements is one of these."
            )
        return GraphQLInputObjectType(f"{name}ListFilter", fields)

    def _of_leaf(self, shape: ScalarKind | Choice, name: str) -> GraphQLInputObjectType:
        leaf = cast("GraphQLScalarType | GraphQLEnumType", self.types.input(shape, name))
        title = f"{leaf.name}Filter"
        if title not in self._shared:
            self._shared[title] = GraphQLInputObjectType(title, _comparisons(shape, leaf))
        return self._shared[title]


def _comparisons(
    shape: ScalarKind | Choice, leaf: GraphQLScalarType | GraphQLEnumType
) -> dict[str, GraphQLInputField]:
    words = list(_OPERATORS)
    if shape not in ORDERED:
        words = words[:4]
    fields = {
        word: GraphQLInputField(
            GraphQLList(GraphQLNonNull(leaf)) if word in ("in", "nin") else leaf
        )
        for word in words
    }
    fields["exists"] = GraphQLInputField(GraphQLBoolean)
    if shape is ScalarKind.STRING:
        fields["regex"] = GraphQLInputField(GraphQLString)
    return fields


def as_filter(shape: RecordShape, conditions: Mapping[str, object] | None) -> JsonObject:
    """Translate an input to a filter."""
    parts = list(_parts(shape, conditions or {}, ""))
    if not parts:
        return {}
    return parts[0] if len(parts) == 1 else {"$and": cast("JsonValue", parts)}


def _parts(shape: RecordShape, conditions: Mapping[str, object], path: str) -> Iterator[JsonObject]:
    by_field = {member.field: member for member in shape.members}
    for word, value in conditions.items():
        if value is None:
            continue
        if word in _LOGIC:
            inner = [_all_of(shape, condition, path) for condition in cast("list[object]", value)]
            yield {_LOGIC[word]: cast("JsonValue", inner)}
        elif word == "match":
            yield cast("JsonObject", value)
        else:
            yield from _of_member(by_field[word], cast("Mapping[str, object]", value), path)


def _all_of(shape: RecordShape, conditions: object, path: str) -> JsonObject:
    parts = list(_parts(shape, cast("Mapping[str, object]", conditions), path))
    return parts[0] if len(parts) == 1 else {"$and": cast("JsonValue", parts or [{}])}


def _of_member(
    member: RecordMember, conditions: Mapping[str, object], path: str
) -> Iterator[JsonObject]:
    where, shape = path + member.name, member.shape
    if isinstance(shape, RecordShape):
        yield from _parts(shape, conditions, f"{where}.")
    elif isinstance(shape, ListOf):
        for word, value in conditions.items():
            yield {where: _of_list_word(shape, word, value)}
    else:
        for word, value in conditions.items():
            yield {where: _comparison(shape, word, value)}


def _of_list_word(shape: ListOf, word: str, value: object) -> JsonObject:
    if word == "some" and isinstance(shape.item, RecordShape):
        return {"$elemMatch": as_filter(shape.item, cast("Mapping[str, object]", value))}
    words: dict[str, Callable[[object], JsonObject]] = {
        "size": lambda size: {"$size": cast("int", size)},
        "exists": lambda exists: {"$exists": cast("bool", exists)},
        "has": lambda element: {"$eq": written(shape.item, element)},
        "all": lambda elements: {"$all": written(shape, elements)},
        "any": lambda elements: {"$in": written(shape, elements)},
    }
    return words[word](value)


def _comparison(shape: ScalarKind | Choice, word: str, value: object) -> JsonObject:
    if word == "exists":
        return {"$exists": cast("bool", value)}
    if word == "regex":
        return {"$regex": cast("str", value)}
    if word in ("in", "nin"):
        return {_OPERATORS[word]: written(ListOf(shape), value)}
    return {_OPERATORS[word]: written(shape, value)}


def sort_field(shape: RecordShape, name: str) -> GraphQLEnumType:
    """Return the enum of sort fields: those of the documents, and their times."""
    paths = _paths(shape)
    for title, path in _TIMES.items():
        while title in paths:
            title += "_"  # noqa: PLW2901 -- until the name is unique
        paths[title] = path
    return GraphQLEnumType(f"{name}SortField", paths)


def group_field(shape: RecordShape, name: str) -> GraphQLEnumType | None:
    """Return the enum of fields to group by; None if there are none."""
    paths = _paths(shape)
    return GraphQLEnumType(f"{name}GroupField", paths) if paths else None


def _paths(shape: RecordShape) -> dict[str, str]:
    """Return the paths of the fields that are not records, by name."""
    paths: dict[str, str] = {}
    for title, path, _ in leaves(shape):
        paths.setdefault(title, path)
    return paths


def sort_input(name: str, by: GraphQLEnumType) -> GraphQLInputObjectType:
    """Return the input of one key of a sort."""
    return GraphQLInputObjectType(
        f"{name}Sort",
        {
            "by": GraphQLInputField(GraphQLNonNull(by)),
            "direction": GraphQLInputField(DIRECTION, default_value=1),
        },
    )


def leaves(
    shape: RecordShape, title: str = "", path: str = ""
) -> Iterator[tuple[str, str, ScalarKind | Choice | ListOf]]:
    """Yield the fields of documents that are not records: name, path and shape."""
    for member in shape.members:
        if isinstance(member.shape, RecordShape):
            yield from leaves(member.shape, f"{title}{member.field}_", f"{path}{member.name}.")
        else:
            yield title + member.field, path + member.name, member.shape


def as_sort(sort: object) -> JsonValue:
    """Translate inputs to a sort."""
    if sort is None:
        return None
    keys = cast("list[Mapping[str, JsonValue]]", sort)
    return [[key["by"], key["direction"]] for key in keys]
