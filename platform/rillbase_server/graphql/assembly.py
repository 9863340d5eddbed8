"""One schema for each tenant: the common fields, and those of its collections.

Schemas are created in a thread, since that takes long for tenants with many collections, and cached
until the collections change. The least recently used are evicted first.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from typing import cast
from uuid import UUID

import strawberry
from drf_spectacular.generators import SchemaGenerator
from graphql import (
    GraphQLField,
    GraphQLInterfaceType,
    GraphQLNamedType,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLSchema,
    get_named_type,
    is_scalar_type,
)
from strawberry.schema.config import StrawberryConfig
from strawberry.schema.schema_converter import GraphQLCoreConverter
from strawberry.utils.str_converters import to_camel_case

from documents.store.database import pool, scope
from foundation.json_types import JsonObject
from foundation.postgres import Statement
from foundation.postgres.session import Oid
from rillbase_server.graphql.aggregates import (
    AggregateMutations,
    AggregateQueries,
    AggregateSubscriptions,
)
from rillbase_server.graphql.context import Resolving
from rillbase_server.graphql.control import ControlPlane
from rillbase_server.graphql.datasets import DatasetQueries
from rillbase_server.graphql.documents import (
    AnyDocument,
    DocumentMutations,
    DocumentQueries,
)
from rillbase_server.graphql.groups import GroupQueries, GroupSubscriptions
from rillbase_server.graphql.live import DocumentSubscriptions
from rillbase_server.graphql.operation_cache import OperationCache
from rillbase_server.graphql.rows import READ
from rillbase_server.graphql.topics import (
    SCALARS,
    TopicMutations,
    TopicQueries,
    TopicSubscriptions,
)
from rillbase_server.graphql.typed.fields import CollectionFields
from rillbase_server.graphql.typed.filters import FilterInputs
from rillbase_server.graphql.typed.lookups import LookupTypes
from rillbase_server.graphql.typed.shapes import RecordShape, Schema, shape_of
from rillbase_server.graphql.typed.typed_collection import TypedCollection
from rillbase_server.graphql.typed.types import TypeFactory
from rillbase_server.graphql.writes import Writes

MAX_SCHEMAS = 200
#: How long a tenant's collections are assumed unchanged.
CACHE_S = 1.0

_SCHEMAS = Statement(
    "SELECT name, schema FROM documents_collection "
    "WHERE tenant_id = $1 AND state = 'active' AND schema IS NOT NULL ORDER BY name",
    (Oid.UUID,),
)

#: Types of which a response may contain many objects.
_OF_MANY = (
    "AnyDocument",
    "AnyDocumentEdge",
    "DocumentGroup",
    "DocumentGroupEdge",
    "LiveDocuments",
    "LiveGroups",
    "TopicPublication",
    "LivePublications",
)

#: Names of collections with their JSON Schemas, as text.
CollectionSchemas = tuple[tuple[str, bytes], ...]


@dataclass(slots=True)
class _Entry:
    collections: CollectionSchemas
    texts: OperationCache
    valid_until: float


@dataclass(slots=True)
class Schemas:
    """The schemas of an event loop."""

    _entries: OrderedDict[UUID, _Entry] = field(default_factory=OrderedDict)
    _builds: dict[tuple[UUID, CollectionSchemas], asyncio.Task[OperationCache]] = field(
        default_factory=dict
    )

    async def of(self, tenant_id: UUID | None) -> OperationCache:
        """Return a tenant's schema; without a tenant, the common schema."""
        if tenant_id is None:
            return without_collections()
        entry = self._entries.get(tenant_id)
        now = time.monotonic()
        if entry is not None and entry.valid_until > now:
            return entry.texts
        collections = await _collections(tenant_id)
        if entry is not None and entry.collections == collections:
            texts = entry.texts
        else:
            texts = await self._build(tenant_id, collections)
        self._entries[tenant_id] = _Entry(collections, texts, now + CACHE_S)
        self._entries.move_to_end(tenant_id)
        while len(self._entries) > MAX_SCHEMAS:
            self._entries.popitem(last=False)
        return texts

    async def _build(self, tenant_id: UUID, collections: CollectionSchemas) -> OperationCache:
        """Create a schema once for all concurrent callers."""
        key = (tenant_id, collections)
        task = self._builds.get(key)
        if task is None:
            task = asyncio.create_task(asyncio.to_thread(_texts, collections))
            self._builds[key] = task
            task.add_done_callback(lambda _: self._builds.pop(key, None))
        return await asyncio.shield(task)


async def _collections(tenant_id: UUID) -> CollectionSchemas:
    async with pool().session(tenant_id) as session:
        _, rows = await session.run([scope(tenant_id), (_SCHEMAS, (tenant_id.bytes,))])
    return tuple((rows.text(number, 0), rows.bytes(number, 1)) for number in range(rows.rows))


@strawberry.type(name="Query")
class QueryRoot(DocumentQueries, GroupQueries, TopicQueries, AggregateQueries, DatasetQueries):
    pass


@strawberry.type(name="Mutation")
class MutationRoot(DocumentMutations, TopicMutations, AggregateMutations):
    pass


@strawberry.type(name="Subscription")
class SubscriptionRoot(
    DocumentSubscriptions, GroupSubscriptions, TopicSubscriptions, AggregateSubscriptions
):
    pass


@lru_cache(maxsize=1)
def static_schema() -> GraphQLSchema:
    """Return the part of the schema that is declared as classes."""
    config = StrawberryConfig(scalar_map=dict(SCALARS))
    strawberry_schema = strawberry.Schema(
        QueryRoot, MutationRoot, SubscriptionRoot, types=[AnyDocument], config=config
    )
    schema = strawberry_schema._schema  # the library has no public name for it
    for name in _OF_MANY:
        for shown in cast("GraphQLObjectType", schema.type_map[name]).fields.values():
            _read_directly(shown)
    for root in (schema.query_type, schema.mutation_type):
        for root_field in root.fields.values() if root is not None else ():
            _call_directly(root_field)
    return schema


def _read_directly(field: GraphQLField) -> None:
    """Make a field that only reads an attribute bypass the library's resolver.

    Pages have thousands of such fields, and the resolvers would take most of the time.
    """
    declared = (field.extensions or {})[GraphQLCoreConverter.DEFINITION_BACKREF]
    if declared.base_resolver is None:
        attribute = attrgetter(declared.python_name)
        field.resolve = lambda source, _: attribute(source)
        field.extensions = {**(field.extensions or {}), READ: attribute}


def _call_directly(field: GraphQLField) -> None:
    """Pass a field's arguments to its function unconverted if all are plain values or JSON.

    The library would check each of them for enums, inputs and names to convert.
    """
    if not all(is_scalar_type(get_named_type(arguments.type)) for arguments in field.args.values()):
        return
    declared = (field.extensions or {})[GraphQLCoreConverter.DEFINITION_BACKREF]
    function = declared.base_resolver.wrapped_func
    for argument in declared.arguments:
        spelled = argument.graphql_name or to_camel_case(argument.python_name)
        field.args[spelled].out_name = argument.python_name
    field.resolve = lambda source, info, **arguments: function(
        source, strawberry.Info(_raw_info=info, _field=declared), **arguments
    )


@lru_cache(maxsize=1)
def without_collections() -> OperationCache:
    """Return the schema without the fields of any collection."""
    return _texts(())


def _texts(collections: CollectionSchemas) -> OperationCache:
    type_names = set(without_collections().schema.type_map) if collections else set()
    declared: dict[str, TypedCollection] = {}
    for name, text in collections:
        shape = shape_of(cast("Schema", json.loads(text)))
        if isinstance(shape, RecordShape):
            collection = TypedCollection.of(name, shape, type_names)
            # Duplicate names are rejected on creation, except in concurrent calls.
            declared.setdefault(collection.field, collection)
            type_names |= collection.types
    return OperationCache(assembled(list(declared.values())))


def assembled(declared: list[TypedCollection]) -> GraphQLSchema:
    """Assemble a schema."""
    static = static_schema()
    types = TypeFactory(cast("GraphQLScalarType", static.type_map["JSON"]))
    filters = FilterInputs(types)
    control = ControlPlane(
        _components(), types, cast("GraphQLObjectType", static.type_map["PageInfo"])
    )
    general = cast("GraphQLObjectType", static.type_map["AnyDocument"])
    lookups = LookupTypes(general)
    collections = [CollectionFields(fields, static, types, filters, lookups) for fields in declared]
    roots = (static.query_type, static.mutation_type, static.subscription_type)
    query, mutation, subscription = (dict(root.fields) if root else {} for root in roots)
    query |= control.queries()
    mutation |= Writes(types.json, general, types.json).of_any_collection() | control.mutations()
    for fields in collections:
        query |= fields.queries()
        mutation |= fields.mutations()
        subscription |= fields.subscriptions()
    nodes: list[GraphQLNamedType] = [fields.node for fields in collections]
    schema = GraphQLSchema(
        query=_root("Query", query),
        mutation=_root("Mutation", mutation),
        subscription=_root("Subscription", subscription),
        types=[general, *nodes, lookups.one, lookups.many],
        extensions={
            "nodes": {fields.declared.collection: fields.declared.type for fields in collections}
        },
    )
    _resolve_nodes(cast("GraphQLInterfaceType", static.type_map["Node"]))
    return schema


def _root(name: str, fields: dict[str, GraphQLField]) -> GraphQLObjectType:
    return GraphQLObjectType(name, fields)


def _resolve_nodes(interface: GraphQLInterfaceType) -> None:
    """Resolve documents to their collection's type, if it has one."""

    def resolve(value: AnyDocument, info: Resolving, _: object) -> str:
        named: dict[str, str] = info.schema.extensions["nodes"]
        return named.get(value.collection, "AnyDocument")

    interface.resolve_type = resolve


@lru_cache(maxsize=1)
def _components() -> dict[str, Schema]:
    """Return the components of the REST API's OpenAPI document."""
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    document = cast(
        "JsonObject",
        generator.get_schema(request=None, public=True),  # type: ignore[no-untyped-call]
    )
    components = cast("JsonObject", document["components"])
    return cast("dict[str, Schema]", components["schemas"])
