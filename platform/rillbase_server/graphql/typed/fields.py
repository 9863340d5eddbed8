"""The fields of one collection: queries, mutations and subscriptions, with its own types."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from functools import partial
from operator import attrgetter
from typing import cast

from graphql import (
    GraphQLArgument,
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLSchema,
    GraphQLString,
)

from foundation.json_types import JsonObject
from rillbase_server.graphql import documents, live
from rillbase_server.graphql.context import Resolving
from rillbase_server.graphql.documents import AnyDocument, AnyDocumentConnection
from rillbase_server.graphql.live import LiveDocuments
from rillbase_server.graphql.rows import READ
from rillbase_server.graphql.selections import SelectedField
from rillbase_server.graphql.typed.filters import (
    FilterInputs,
    as_filter,
    as_sort,
    group_field,
    sort_field,
    sort_input,
)
from rillbase_server.graphql.typed.groups import GroupFields
from rillbase_server.graphql.typed.lookups import LookupTypes, selected_lookups
from rillbase_server.graphql.typed.typed_collection import (
    PAGES,
    WATCHED,
    Fields,
    TypedCollection,
    many,
)
from rillbase_server.graphql.typed.types import TypeFactory, written
from rillbase_server.graphql.writes import Writes

_DOCUMENT = attrgetter("document")


class CollectionFields:
    """Creates the fields of one collection."""

    def __init__(
        self,
        declared: TypedCollection,
        static: GraphQLSchema,
        types: TypeFactory,
        filters: FilterInputs,
        lookups: LookupTypes,
    ) -> None:
        self.declared = declared
        self.static = static
        self.types = types
        self.filters = filters
        self.lookups = lookups
        shape, name = declared.shape, declared.type
        self.content = self.types.output(shape, f"{name}Content")
        self.node = self._node()
        lookups.add(declared.field, declared.collection, self.node)
        self.filter = GraphQLArgument(self.filters.of_record(shape, name))
        sort = sort_input(name, sort_field(shape, name))
        self.sorted = {"sort": GraphQLArgument(GraphQLList(GraphQLNonNull(sort)))}
        self.groups: GroupFields | None = None
        by = group_field(shape, name)
        if by is not None:
            self.groups = GroupFields(declared, static, self.content, by, self.filter)

    def _node(self) -> GraphQLObjectType:
        """A document with its content in the collection's own type."""
        general = cast("GraphQLObjectType", self.static.type_map["AnyDocument"])
        general_fields = {name: general.fields[name] for name in ("id", "key", "version")}
        general_fields |= {name: general.fields[name] for name in ("createdAt", "updatedAt")}
        interface = cast("GraphQLInterfaceType", self.static.type_map["Node"])
        return GraphQLObjectType(
            self.declared.type,
            {
                **general_fields,
                "document": GraphQLField(self.content, extensions={READ: _DOCUMENT}),
                **self.lookups.of(self.declared.shape, self.declared.type),
            },
            interfaces=[interface],
            description=f"A document of the collection {self.declared.collection}.",
        )

    def queries(self) -> Fields:
        """Return the query fields."""
        return {
            self.declared.field: GraphQLField(
                GraphQLNonNull(self._connection()),
                {"filter": self.filter, **self.sorted, **PAGES},
                resolve=self._read_page,
                description=f"Documents of {self.declared.collection}, page by page.",
            ),
            f"{self.declared.field}ByKey": GraphQLField(
                self.node,
                {"key": self._key()},
                resolve=self._read_one,
                description=f"One document of {self.declared.collection}.",
            ),
            **(self.groups.queries() if self.groups is not None else {}),
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
                "nodes": GraphQLField(many(self.node), resolve=general.fields["nodes"].resolve),
                "edges": GraphQLField(many(edge), resolve=general.fields["edges"].resolve),
                "pageInfo": general.fields["pageInfo"],
                "notices": general.fields["notices"],
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
        **arguments: object,
    ) -> AnyDocumentConnection:
        query = self._query(arguments, info)
        return await documents.connection(
            info.context, self.declared.collection, query, first, after
        )

    async def _read_one(self, _: object, info: Resolving, *, key: object) -> AnyDocument | None:
        return await documents.by_key(info.context, self.declared.collection, key)

    def _query(self, arguments: Mapping[str, object], info: Resolving) -> JsonObject:
        condition = cast("Mapping[str, object] | None", arguments.get("filter"))
        return {
            "filter": as_filter(self.declared.shape, condition),
            "sort": as_sort(arguments.get("sort")),
            "lookup": selected_lookups(SelectedField.resolved(info)),
        }

    def mutations(self) -> Fields:
        """Return the mutation fields."""
        shape = self.declared.shape
        content = self.types.input(shape, self.declared.type)
        writes = Writes(self.types.json, self.node, content, partial(written, shape))
        return writes.of(self.declared.collection, self.declared.field)

    def subscriptions(self) -> Fields:
        """Return the subscription field."""
        general = cast("GraphQLObjectType", self.static.type_map["LiveDocuments"])
        typed = {
            **general.fields,
            "items": GraphQLField(GraphQLList(GraphQLNonNull(self.node))),
            "node": GraphQLField(self.node),
        }
        watched = cast("GraphQLObjectType", self.static.subscription_type)
        arguments = watched.fields["documents"].args
        return {
            self.declared.field: GraphQLField(
                GraphQLNonNull(GraphQLObjectType(f"{self.declared.type}Live", typed)),
                {
                    "filter": self.filter,
                    **self.sorted,
                    **{name: arguments[name] for name in WATCHED},
                },
                subscribe=self._watch,
                resolve=lambda event, _info, **_: event,
                description=f"Subscribe to a query of {self.declared.collection}: its result, "
                "then each change.",
            ),
            **(self.groups.subscriptions() if self.groups is not None else {}),
        }

    def _watch(
        self, _: object, info: Resolving, **arguments: object
    ) -> AsyncGenerator[LiveDocuments, None]:
        query = self._query(arguments, info)
        return live.watch(info.context, live.message(self.declared.collection, query, arguments))
