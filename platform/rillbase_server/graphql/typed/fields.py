"""The fields of one collection: what is asked, changed and watched, in its own types."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Container, Mapping
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import cast

from graphql import (
    GraphQLArgument,
    GraphQLField,
    GraphQLInt,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLString,
)

from documents.collections import field_names as names
from foundation.json_types import JsonObject
from rillbase_server.graphql import documents, live
from rillbase_server.graphql.context import Resolving
from rillbase_server.graphql.documents import AnyDocument, AnyDocumentConnection
from rillbase_server.graphql.live import LiveDocuments
from rillbase_server.graphql.rows import READ
from rillbase_server.graphql.typed.filters import Filters, as_filter, as_sort, sort_input
from rillbase_server.graphql.typed.shapes import Record
from rillbase_server.graphql.typed.types import Types, written
from rillbase_server.graphql.writes import Writes

Fields = dict[str, GraphQLField]

_DOCUMENT = attrgetter("document")
_ENDINGS = ("", "Content", "Connection", "Edge", "Filter", "Sort", "SortField", "Input", "Live")


@dataclass(frozen=True, slots=True)
class Declared:
    """A collection whose documents have a shape."""

    collection: str
    shape: Record
    #: What its types are called after.
    type: str

    @classmethod
    def of(cls, collection: str, shape: Record, taken: Container[str]) -> Declared:
        """Return a collection whose types have names that no other types have."""
        name = names.type_name(names.of_collection(collection))
        while any(name + ending in taken for ending in _ENDINGS):
            name += "_"
        return cls(collection, shape, name)

    @property
    def field(self) -> str:
        return names.of_collection(self.collection)


class CollectionFields:
    """Makes the fields of one collection."""

    def __init__(
        self, declared: Declared, static: GraphQLSchema, types: Types, filters: Filters
    ) -> None:
        self.declared = declared
        self.static = static
        self.types = types
        self.filters = filters
        shape, name = declared.shape, declared.type
        self.node = self._node()
        self.filter = GraphQLArgument(self.filters.of_record(shape, name))
        sort = sort_input(shape, name)
        self.sorted = (
            {"sort": GraphQLArgument(GraphQLList(GraphQLNonNull(sort)))} if sort is not None else {}
        )

    def _node(self) -> GraphQLObjectType:
        """A document with its content in the collection's own type."""
        general = cast("GraphQLObjectType", self.static.type_map["AnyDocument"])
        content = self.types.output(self.declared.shape, f"{self.declared.type}Content")
        kept = {name: general.fields[name] for name in ("id", "key", "version")}
        kept |= {name: general.fields[name] for name in ("createdAt", "updatedAt")}
        interface = cast("GraphQLInterfaceType", self.static.type_map["Node"])
        return GraphQLObjectType(
            self.declared.type,
            {**kept, "document": GraphQLField(content, extensions={READ: _DOCUMENT})},
            interfaces=[interface],
            description=f"A document of the collection {self.declared.collection}.",
        )

    def queries(self) -> Fields:
        """Return the fields that read."""
        pages = {"first": GraphQLArgument(GraphQLInt), "after": GraphQLArgument(GraphQLString)}
        return {
            self.declared.field: GraphQLField(
                GraphQLNonNull(self._connection()),
                {"filter": self.filter, **self.sorted, **pages},
                resolve=self._read_page,
                description=f"Documents of {self.declared.collection}, page by page.",
            ),
            f"{self.declared.field}ByKey": GraphQLField(
                self.node,
                {"key": self._key()},
                resolve=self._read_one,
                description=f"One document of {self.declared.collection}.",
            ),
        }

    def _key(self) -> GraphQLArgument:
        return GraphQLArgument(GraphQLNonNull(self.types.json), description="The `_id`.")

    def _connection(self) -> GraphQLObjectType:
        general = cast("GraphQLObjectType", self.static.type_map["AnyDocumentConnection"])
        edge = GraphQLObjectType(
            f"{self.declared.type}Edge",
            {
                "cursor": GraphQLField(GraphQLNonNull(GraphQLString)),
                "node": GraphQLField(GraphQLNonNull(self.node)),
            },
        )
        return GraphQLObjectType(
            f"{self.declared.type}Connection",
            {
                "nodes": GraphQLField(_many(self.node), resolve=general.fields["nodes"].resolve),
                "edges": GraphQLField(_many(edge), resolve=general.fields["edges"].resolve),
                "pageInfo": general.fields["pageInfo"],
                "totalCount": general.fields["totalCount"],
            },
        )

    async def _read_page(
        self,
        _: object,
        info: Resolving,
        *,
        first: int | None = None,
        after: str | None = None,
        **asked: object,
    ) -> AnyDocumentConnection:
        return await documents.connection(
            info.context, self.declared.collection, self._query(asked), first, after
        )

    async def _read_one(self, _: object, info: Resolving, *, key: object) -> AnyDocument | None:
        return await documents.by_key(info.context, self.declared.collection, key)

    def _query(self, asked: Mapping[str, object]) -> JsonObject:
        given = cast("Mapping[str, object] | None", asked.get("filter"))
        return {
            "filter": as_filter(self.declared.shape, given),
            "sort": as_sort(asked.get("sort")),
        }

    def mutations(self) -> Fields:
        """Return the fields that write."""
        shape = self.declared.shape
        content = self.types.input(shape, self.declared.type)
        writes = Writes(self.types.json, self.node, content, partial(written, shape))
        return writes.of(self.declared.collection, self.declared.field)

    def subscriptions(self) -> Fields:
        """Return the field that watches."""
        general = cast("GraphQLObjectType", self.static.type_map["LiveDocuments"])
        typed = {
            **general.fields,
            "items": GraphQLField(GraphQLList(GraphQLNonNull(self.node))),
            "node": GraphQLField(self.node),
        }
        watched = cast("GraphQLObjectType", self.static.subscription_type)
        arguments = watched.fields["documents"].args
        kept = ("offset", "limit", "resume", "deliver", "throttleMs")
        return {
            self.declared.field: GraphQLField(
                GraphQLNonNull(GraphQLObjectType(f"{self.declared.type}Live", typed)),
                {
                    "filter": self.filter,
                    **self.sorted,
                    **{name: arguments[name] for name in kept},
                },
                subscribe=self._watch,
                resolve=lambda event, _info, **_: event,
                description=f"A query's answer in {self.declared.collection}, and its changes.",
            )
        }

    def _watch(
        self, _: object, info: Resolving, **asked: object
    ) -> AsyncGenerator[LiveDocuments, None]:
        deliver = live.Deliver(asked.get("deliver", live.Deliver.EVENTS))
        message: dict[str, object] = {
            "collection": self.declared.collection,
            **self._query(asked),
            **{name: asked.get(name) for name in ("offset", "limit", "resume")},
            "options": live.options(deliver, cast("int", asked.get("throttleMs", 0))),
        }
        return live.watch(info.context, cast("JsonObject", message))


def _many(of: GraphQLObjectType) -> GraphQLNonNull[GraphQLList[GraphQLNonNull[GraphQLObjectType]]]:
    return GraphQLNonNull(GraphQLList(GraphQLNonNull(of)))
