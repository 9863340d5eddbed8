"""The control plane: fields for the REST calls, with types from the REST API's own description.

One table says which resources there are; everything else follows from the OpenAPI document, so
what a call takes and answers is never written down twice.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from graphql import (
    GraphQLArgument,
    GraphQLBoolean,
    GraphQLField,
    GraphQLID,
    GraphQLInt,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLString,
)

from foundation.errors import FieldProblem, InvalidBody
from foundation.json_types import JsonObject, JsonValue
from rillbase_server.graphql.context import Context, Resolving
from rillbase_server.graphql.inner import path_of
from rillbase_server.graphql.typed.shapes import Record, Schema, Shape, shape_of
from rillbase_server.graphql.typed.types import Readable, Types, written

Fields: TypeAlias = dict[str, GraphQLField]
Resolve: TypeAlias = Callable[..., Awaitable[object]]

_COMPONENTS = "#/components/schemas/"
DEFAULT_FIRST, MAX_FIRST = 50, 200


@dataclass(frozen=True, slots=True)
class Resource:
    """Something that tenants have several of."""

    #: As fields and types call one of them, and several.
    one: str
    many: str
    segment: str
    #: Names of components.
    answer: str
    #: What one is known by in an address: a member of the answer.
    key: str = "id"
    creation: str | None = None
    created: str | None = None
    change: str | None = None
    deletable: bool = False
    #: Whether the list comes page by page.
    paged: bool = True
    #: Further calls: a word for the field, the call's suffix, the components.
    calls: tuple[tuple[str, str, str | None, str], ...] = ()


RESOURCES = (
    Resource(
        "member",
        "members",
        "members",
        "MemberAnswer",
        key="user_id",
        change="PatchedMemberChangeRequest",
        deletable=True,
    ),
    Resource(
        "invitation",
        "invitations",
        "invitations",
        "InvitationAnswer",
        creation="InvitationCreationRequest",
        deletable=True,
        calls=(("resend", ":resend", None, "InvitationAnswer"),),
    ),
    Resource(
        "apiKey",
        "apiKeys",
        "api-keys",
        "ApiKeyAnswer",
        creation="ApiKeyCreationRequest",
        created="NewApiKeyAnswer",
        change="PatchedApiKeyChangeRequest",
        deletable=True,
        calls=(("rotate", "/rotate", "ApiKeyRotationRequest", "NewApiKeyAnswer"),),
    ),
    Resource(
        "collection",
        "collections",
        "collections",
        "CollectionAnswer",
        key="name",
        creation="CollectionCreationRequest",
        change="PatchedCollectionChangeRequest",
        deletable=True,
    ),
    Resource(
        "issuer",
        "issuers",
        "issuers",
        "IssuerAnswer",
        creation="IssuerCreationRequest",
        deletable=True,
    ),
    Resource(
        "webhook",
        "webhooks",
        "webhooks",
        "WebhookAnswer",
        creation="WebhookCreationRequest",
        created="NewWebhookAnswer",
        change="PatchedWebhookChangeRequest",
        deletable=True,
        calls=(
            ("verify", ":verify", None, "WebhookAnswer"),
            ("test", ":test", None, "DeliveryAnswer"),
            ("rotateSecretOf", ":rotate-secret", None, "NewWebhookAnswer"),
        ),
    ),
    Resource(
        "personalToken",
        "personalTokens",
        "tokens",
        "TenantTokenAnswer",
        creation="TokenCreationRequest",
        created="NewTokenAnswer",
        deletable=True,
    ),
    Resource("auditEntry", "auditLog", "audit-log", "AuditEntryAnswer"),
    Resource("error", "errors", "errors", "ErrorEntryAnswer"),
    Resource(
        "subscription",
        "subscriptions",
        "subscriptions",
        "SubscriptionAnswer",
        deletable=True,
        paged=False,
    ),
)


@dataclass(slots=True)
class ControlPlane:
    """Makes the fields, from the components of an OpenAPI document."""

    components: Mapping[str, Schema]
    types: Types
    page_info: GraphQLObjectType
    _outputs: dict[str, Readable] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A tenant is the same type wherever it comes: with all that belongs to it.
        self._outputs["TenantAnswer"] = self._tenant()

    def queries(self) -> Fields:
        """Return the root fields that read."""
        tenant = cast("GraphQLObjectType", self._output("TenantAnswer"))
        return {
            "viewer": GraphQLField(
                self._output("MeAnswer"),
                resolve=lambda _, info: info.context.inner.get(path_of("me")),
                description="Who asks, where that is a person.",
            ),
            "tenant": GraphQLField(
                tenant,
                {"slug": GraphQLArgument(GraphQLNonNull(GraphQLString))},
                resolve=_one_tenant,
                description="A tenant, for its members and its `admin` keys.",
            ),
            "tenants": GraphQLField(
                GraphQLNonNull(self._connection("Tenant", tenant)),
                _pages(),
                resolve=lambda _, info, **asked: _page(info.context, path_of("tenants"), asked),
                description="The tenants that whoever asks is a member of.",
            ),
        }

    def mutations(self) -> Fields:
        """Return the root fields that change something."""
        found: Fields = {
            "createTenant": self._posting(
                "TenantCreationRequest", "TenantAnswer", {}, lambda _: path_of("tenants")
            )
        }
        for resource in RESOURCES:
            found |= self._mutations_of(resource)
        return found

    def _tenant(self) -> GraphQLObjectType:
        answer = self.types.output(self._shape("TenantAnswer"), "Tenant")
        fields = dict(cast("GraphQLObjectType", answer).fields)
        for resource in RESOURCES:
            fields[resource.many] = self._list(resource)
        for name, component in (("quota", "QuotaAnswer"), ("usage", "UsageAnswer")):
            fields[name] = GraphQLField(self._output(component), resolve=_below(name))
        return GraphQLObjectType("Tenant", fields)

    def _list(self, resource: Resource) -> GraphQLField:
        async def resolve(tenant: JsonObject, info: Resolving, **asked: object) -> _Page:
            path = path_of("tenants", str(tenant["slug"]), resource.segment)
            return await _page(info.context, path, asked)

        node = cast("GraphQLObjectType", self._output(resource.answer))
        connection = self._connection(_title(resource.answer), node)
        pages = _pages() if resource.paged else {}
        return GraphQLField(GraphQLNonNull(connection), pages, resolve=resolve)

    def _connection(self, name: str, node: GraphQLObjectType) -> GraphQLObjectType:
        known = self._outputs.get(f"{name}Connection")
        if known is None:
            fields = {
                "nodes": GraphQLField(GraphQLNonNull(GraphQLList(GraphQLNonNull(node)))),
                "pageInfo": GraphQLField(
                    GraphQLNonNull(self.page_info), resolve=lambda page, _: page.page_info
                ),
            }
            known = self._outputs[f"{name}Connection"] = GraphQLObjectType(
                f"{name}Connection", fields
            )
        return cast("GraphQLObjectType", known)

    def _mutations_of(self, resource: Resource) -> Fields:
        title = resource.one[:1].upper() + resource.one[1:]
        whole = {"tenant": GraphQLArgument(GraphQLNonNull(GraphQLString))}
        one = {**whole, resource.one: GraphQLArgument(GraphQLNonNull(GraphQLID))}

        def all_of(asked: Mapping[str, object]) -> str:
            return path_of("tenants", str(asked["tenant"]), resource.segment)

        def one_of(asked: Mapping[str, object]) -> str:
            parts = (str(asked["tenant"]), resource.segment, str(asked[resource.one]))
            return path_of("tenants", *parts)

        found: Fields = {}
        if resource.creation is not None:
            answer = resource.created or resource.answer
            found[f"create{title}"] = self._posting(resource.creation, answer, whole, all_of)
        if resource.change is not None:
            found[f"update{title}"] = self._posting(
                resource.change, resource.answer, one, one_of, patches=True
            )
        if resource.deletable:
            found[f"delete{title}"] = GraphQLField(
                GraphQLNonNull(GraphQLBoolean), one, resolve=_deleting(one_of)
            )
        for word, suffix, request, answer in resource.calls:
            found[f"{word}{title}"] = self._posting(request, answer, one, _suffixed(one_of, suffix))
        return found

    def _posting(
        self,
        request: str | None,
        answer: str,
        arguments: dict[str, GraphQLArgument],
        path: Callable[[Mapping[str, object]], str],
        *,
        patches: bool = False,
    ) -> GraphQLField:
        shape = self._shape(request) if request is not None else None
        given = {**arguments, "idempotencyKey": GraphQLArgument(GraphQLString)}
        if shape is not None and request is not None:
            wanted = self.types.input(shape, _title(request))
            given["input"] = GraphQLArgument(GraphQLNonNull(wanted))

        async def resolve(_: object, info: Resolving, **asked: object) -> JsonObject:
            body = written(shape, asked["input"]) if shape is not None else {}
            key = asked.get("idempotencyKey")
            headers = {} if key is None else {"Idempotency_Key": str(key)}
            inner = info.context.inner
            send = inner.patch if patches else inner.post
            return await send(path(asked), body, **headers)

        return GraphQLField(GraphQLNonNull(self._output(answer)), given, resolve=resolve)

    def _output(self, component: str) -> Readable:
        known = self._outputs.get(component)
        if known is None:
            name = _title(component)
            known = self._outputs[component] = self.types.output(self._shape(component), name)
        return known

    def _shape(self, component: str) -> Shape:
        shape = shape_of(self.components[component], self._resolve)
        if not isinstance(shape, Record):
            raise TypeError(f"{component} is no object")
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
    """Return what a component's type is called."""
    for ending in ("Answer", "Request"):
        component = component.removesuffix(ending)
    # A root of every schema has this name.
    return component.removeprefix("Patched").replace("Subscription", "ActiveSubscription")


def _pages() -> dict[str, GraphQLArgument]:
    return {
        "first": GraphQLArgument(GraphQLInt, default_value=DEFAULT_FIRST),
        "after": GraphQLArgument(GraphQLString),
    }


async def _page(context: Context, path: str, asked: Mapping[str, object]) -> _Page:
    first, after = asked.get("first"), asked.get("after")
    if first is not None and not 0 < cast("int", first) <= MAX_FIRST:
        detail = f"A whole number from 1 to {MAX_FIRST}."
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


def _suffixed(
    path: Callable[[Mapping[str, object]], str], suffix: str
) -> Callable[[Mapping[str, object]], str]:
    return lambda asked: path(asked) + suffix


def _deleting(path: Callable[[Mapping[str, object]], str]) -> Resolve:
    async def resolve(_: object, info: Resolving, **asked: object) -> bool:
        await info.context.inner.delete(path(asked))
        return True

    return resolve
