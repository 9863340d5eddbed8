"""A collection whose documents have a shape, and common parts of the fields of such collections."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

from graphql import (
    GraphQLArgument,
    GraphQLField,
    GraphQLInt,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLString,
)

from documents.collections import field_names as names
from rillbase_server.graphql.typed.shapes import RecordShape

Fields: TypeAlias = dict[str, GraphQLField]

#: Suffixes of the names of a collection's types.
ENDINGS = (
    *("", "Content", "Connection", "Edge", "Filter", "Sort", "SortField", "Input", "Live"),
    *("Reference", "References", "Group", "GroupConnection", "GroupEdge", "GroupLive"),
    *("GroupField", "GroupSort", "GroupSortField", "Sum", "Avg", "Min", "Max"),
)
#: Arguments of paginated fields and of subscription fields.
PAGES = {"first": GraphQLArgument(GraphQLInt), "after": GraphQLArgument(GraphQLString)}
WATCHED = ("offset", "limit", "resume", "deliver", "throttleMs")


@dataclass(frozen=True, slots=True)
class TypedCollection:
    """A collection whose documents have a declared shape."""

    collection: str
    shape: RecordShape
    #: The prefix of its types' names.
    type: str

    @classmethod
    def of(
        cls, collection: str, shape: RecordShape, used_names: AbstractSet[str]
    ) -> TypedCollection:
        """Return a collection with unique names for its types."""
        name = names.type_name(names.of_collection(collection))
        while any(name + ending in used_names for ending in ENDINGS):
            name += "_"
        return cls(collection, shape, name)

    @property
    def types(self) -> set[str]:
        """Return the names of its own types."""
        return {self.type + ending for ending in ENDINGS}

    @property
    def field(self) -> str:
        return names.of_collection(self.collection)


def many(of: GraphQLObjectType) -> GraphQLNonNull[GraphQLList[GraphQLNonNull[GraphQLObjectType]]]:
    """Return the type of non-null lists of non-null objects."""
    return GraphQLNonNull(GraphQLList(GraphQLNonNull(of)))
