"""The control plane: fields for the REST calls, with types from the REST API's own description.

The table in `resources` lists the resources. Everything else is derived from the OpenAPI document,
so requests and responses are described only once.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast
from urllib.parse import quote

from graphql import (
    GraphQLArgument,
    GraphQLBoolean,
    GraphQLField,
    GraphQLID,
    GraphQLInt,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLString,
)

from foundation.api.preconditions import etag
from foundation.errors import FieldProblem, InvalidBody
from foundation.json_types import JsonObject, JsonValue
from rillbase_server.graphql.context import Context, Resolving
from rillbase_server.graphql.internal_request import path_of
from rillbase_server.graphql.resources import CLUSTER, RESOURCES, TENANT, RestResource
from rillbase_server.graphql.typed.shapes import RecordShape, Schema, Shape, shape_of
from rillbase_server.graphql.typed.types import Readable, TypeFactory, written

Fields: TypeAlias = dict[str, GraphQLField]
Resolve: TypeAlias = Callable[..., Awaitable[object]]

_COMPONENTS = "#/components/schemas/"
DEFAULT_FIRST, MAX_FIRST = 50, 200


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """The location of a resource: a field's arguments, and the path of the call."""

    arguments: Mapping[str, GraphQLArgument]
    path: Callable[[Mapping[str, object]], str]

    def below(self, segment: str) -> ResourcePath:
        """Return the path of a subresource."""
        return ResourcePath(self.arguments, lambda arguments: f"{self.path(arguments)}/{segment}")

    def one(self, argument: str, kind: GraphQLScalarType = GraphQLID) -> ResourcePath:
        """Return the path of one resource, which an argument names."""
        all_arguments = {**self.arguments, argument: GraphQLArgument(GraphQLNonNull(kind))}
        return ResourcePath(
            all_arguments,
            lambda arguments: f"{self.path(arguments)}/{quote(str(arguments[argument]), safe='')}",
        )

    def suffixed(self, suffix: str) -> ResourcePath:
        return ResourcePath(self.arguments, lambda arguments: self.path(arguments) + suffix)


_TENANTS = ResourcePath({}, lambda _: path_of("tenants"))
_OF_TENANT = _TENANTS.one("tenant", GraphQLString)


def _list_path(resource: RestResource) -> ResourcePath:
    """Return the path of all resources of a kind in a tenant."""
    if resource.of is None:
        return _OF_TENANT.below(resource.segment)
    segment, argument_name = resource.of
    return _OF_TENANT.below(segment).one(argument_name).below(resource.segment)


@dataclass(slots=True)
class ControlPlane:
    """Creates the fields from the components of an OpenAPI document."""

    components: Mapping[str, Schema]
    types: TypeFactory
    page_info: GraphQLObjectType
    _outputs: dict[str, Readable] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A tenant has the same type everywhere, with fields for all of its resources.
        self._outputs["TenantAnswer"] = self._tenant()

    def queries(self) -> Fields:
        """Return the root fields that read."""
        tenant = cast("GraphQLObjectType", self._output("TenantAnswer"))
        return {
            "viewer": GraphQLField(
                self._output("MeAnswer"),
                resolve=lambda _, info: info.context.inner.get(path_of("me")),
                description="The caller, if it is a user.",
            ),
            "tenant": GraphQLField(
                tenant,
                {"slug": GraphQLArgument(GraphQLNonNull(GraphQLString))},
                resolve=_one_tenant,
                description="A tenant, as seen by its members and `admin` keys.",
            ),
            "tenants": GraphQLField(
                GraphQLNonNull(self._connection("Tenant", tenant)),
                _pages(),
                resolve=lambda _, info, **arguments: _page(
                    info.context, path_of("tenants"), arguments
                ),
                description="The tenants of which the caller is a member.",
            ),
        }

    def mutations(self) -> Fields:
        """Return the root fields that write."""
        cluster = _OF_TENANT.below(CLUSTER.segment)
        fields = self._changes(TENANT, _TENANTS, _OF_TENANT)
        fields |= self._changes(CLUSTER, cluster, cluster)
        for resource in RESOURCES:
            all_of = _list_path(resource)
            fields |= self._changes(resource, all_of, all_of.one(resource.one))
        return fields

    def _tenant(self) -> GraphQLObjectType:
        answer = self.types.output(self._shape("TenantAnswer"), "Tenant")
        fields = dict(cast("GraphQLObjectType", answer).fields)
        for resource in RESOURCES:
            fields |= self._reading_fields(resource)
        singles = (
            (CLUSTER.segment, CLUSTER.answer),
            ("quota", "QuotaAnswer"),
            ("usage", "UsageAnswer"),
        )
        for name, component in singles:
            fields[name] = GraphQLField(self._output(component), resolve=_below(name))
        return GraphQLObjectType("Tenant", fields)

    def _reading_fields(self, resource: RestResource) -> Fields:
        """Return a tenant's fields for a kind of resource: the list, and one by key."""
        node = cast("GraphQLObjectType", self._output(resource.answer))
        all_of = _list_path(resource)

        async def read_page(tenant: JsonObject, info: Resolving, **arguments: object) -> _Page:
            return await _page(info.context, all_of.path(_within(tenant, arguments)), arguments)

        parents = {
            name: argument for name, argument in all_of.arguments.items() if name != "tenant"
        }
        connection = self._connection(_title(resource.answer), node)
        pages = _pages() if resource.paged else {}
        fields = {
            resource.many: GraphQLField(
                GraphQLNonNull(connection), {**parents, **pages}, resolve=read_page
            )
        }
        key = resource.key
        if key is None:
            return fields
        one_of = all_of.one(key)

        async def read_one(tenant: JsonObject, info: Resolving, **arguments: object) -> JsonObject:
            return await info.context.inner.get(one_of.path(_within(tenant, arguments)))

        known_by = {**parents, key: one_of.arguments[key]}
        fields[resource.one] = GraphQLField(node, known_by, resolve=read_one)
        return fields

    def _connection(self, name: str, node: GraphQLObjectType) -> GraphQLObjectType:
        output = self._outputs.get(f"{name}Connection")
        if output is None:
            fields = {
                "nodes": GraphQLField(GraphQLNonNull(GraphQLList(GraphQLNonNull(node)))),
                "pageInfo": GraphQLField(
                    GraphQLNonNull(self.page_info), resolve=lambda page, _: page.page_info
                ),
            }
            output = self._outputs[f"{name}Connection"] = GraphQLObjectType(
                f"{name}Connection", fields
            )
        return cast("GraphQLObjectType", output)

    def _changes(
        self, resource: RestResource, all_of: ResourcePath, one_of: ResourcePath
    ) -> Fields:
        """Return the root fields that change resources of a kind."""
        title = resource.one[:1].upper() + resource.one[1:]
        fields: Fields = {}
        if resource.creation is not None:
            answer = resource.created or resource.answer
            fields[f"create{title}"] = self._posting(resource.creation, answer, all_of)
        if resource.change is not None:
            fields[f"update{title}"] = self._posting(
                resource.change, resource.answer, one_of, patches=True
            )
        if resource.deletable:
            arguments = {**one_of.arguments, **_AT_VERSION}
            fields[f"delete{title}"] = GraphQLField(
                GraphQLNonNull(GraphQLBoolean), arguments, resolve=_deleting(one_of.path)
            )
        for word, suffix, request, answer in resource.calls:
            fields[f"{word}{title}"] = self._posting(request, answer, one_of.suffixed(suffix))
        return fields

    def _posting(
        self, request: str | None, answer: str, at: ResourcePath, *, patches: bool = False
    ) -> GraphQLField:
        shape = self._shape(request) if request is not None else None
        inputs = {**at.arguments, "idempotencyKey": GraphQLArgument(GraphQLString)}
        if patches:
            inputs |= _AT_VERSION
        if shape is not None and request is not None:
            input_type = self.types.input(shape, _title(request))
            inputs["input"] = GraphQLArgument(GraphQLNonNull(input_type))

        async def resolve(_: object, info: Resolving, **arguments: object) -> JsonObject:
            body = written(shape, arguments["input"]) if shape is not None else {}
            inner = info.context.inner
            send = inner.patch if patches else inner.post
            return await send(at.path(arguments), body, **_headers(arguments))

        return GraphQLField(GraphQLNonNull(self._output(answer)), inputs, resolve=resolve)

    def _output(self, component: str) -> Readable:
        output = self._outputs.get(component)
        if output is None:
            name = _title(component)
            output = self._outputs[component] = self.types.output(self._shape(component), name)
        return output

    def _shape(self, component: str) -> Shape:
        shape = shape_of(self.components[component], self._resolve)
        if not isinstance(shape, RecordShape):
            raise TypeError(f"{component} is not an object")
        return shape

    def _resolve(self, reference: str) -> Schema:
        return self.components[reference.removeprefix(_COMPONENTS)]


@dataclass(frozen=True, slots=True)
class _PageInfo:
    has_next_page: bool
    has_previous_page: bool
    start_cursor: str | None
    end_cursor: str | None


@dataclass(frozen=True, slots=True)
class _Page:
    nodes: list[JsonValue]
    page_info: _PageInfo


def _title(component: str) -> str:
    """Return the name of a component's type."""
    for ending in ("Answer", "Request"):
        component = component.removesuffix(ending)
    # Every schema has a root type of this name.
    return component.removeprefix("Patched").replace("Subscription", "ActiveSubscription")


def _pages() -> dict[str, GraphQLArgument]:
    return {
        "first": GraphQLArgument(GraphQLInt, default_value=DEFAULT_FIRST),
        "after": GraphQLArgument(GraphQLString),
    }


async def _page(context: Context, path: str, arguments: Mapping[str, object]) -> _Page:
    first, after = arguments.get("first"), arguments.get("after")
    if first is not None and not 0 < cast("int", first) <= MAX_FIRST:
        detail = f"Expected an integer from 1 to {MAX_FIRST}."
        raise InvalidBody(errors=[FieldProblem("/first", "invalid", detail)])
    answer = await context.inner.get(
        path, limit=cast("int | None", first), cursor=cast("str | None", after)
    )
    items, cursor = answer["items"], answer.get("next_cursor")
    end = None if cursor is None else str(cursor)
    info = _PageInfo(end is not None, after is not None, None, end)
    return _Page(items if isinstance(items, list) else [], info)


async def _one_tenant(_: object, info: Resolving, *, slug: str) -> JsonObject:
    return await info.context.inner.get(path_of("tenants", slug))


def _below(segment: str) -> Resolve:
    async def resolve(tenant: JsonObject, info: Resolving) -> JsonObject:
        return await info.context.inner.get(path_of("tenants", str(tenant["slug"]), segment))

    return resolve


def _within(tenant: JsonObject, arguments: Mapping[str, object]) -> Mapping[str, object]:
    """Return the arguments of a tenant's field, including the tenant."""
    return {**arguments, "tenant": tenant["slug"]}


_AT_VERSION = {
    "ifVersion": GraphQLArgument(
        GraphQLInt, description="Change the resource only if it still has this version."
    )
}


def _headers(arguments: Mapping[str, object]) -> dict[str, str]:
    """Return the headers that correspond to arguments."""
    headers = {}
    if (key := arguments.get("idempotencyKey")) is not None:
        headers["Idempotency_Key"] = str(key)
    if (version := arguments.get("ifVersion")) is not None:
        headers["If_Match"] = etag(cast("int", version))
    return headers


def _deleting(path: Callable[[Mapping[str, object]], str]) -> Resolve:
    async def resolve(_: object, info: Resolving, **arguments: object) -> bool:
        await info.context.inner.delete(path(arguments), **_headers(arguments))
        return True

    return resolve
