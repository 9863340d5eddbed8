"""What the fields of one operation share."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TypeAlias

import strawberry
from graphql import GraphQLResolveInfo
from strawberry.dataloader import DataLoader

from documents.api import documents
from foundation.errors import InvalidParameter
from foundation.http import Head
from foundation.json_types import JsonObject, JsonValue
from rillbase_native import Value
from rillbase_server.graphql import text
from rillbase_server.graphql.inner import Inner
from rillbase_server.graphql.plans import Plans
from tenants.asked import Asked, Handler
from tenants.credentials.authenticate import TENANT_HEADER
from tenants.credentials.facts import TenantFacts
from tenants.principals import Principal

#: A collection, and a key as relaxed Extended JSON.
Reference: TypeAlias = tuple[str, str]


@dataclass(slots=True)
class Context:
    """One operation: who asks, in which tenant, and what has been read for it already."""

    principal: Principal
    #: None: a member who named no tenant, and sees the control plane only.
    tenant: TenantFacts | None
    head: Head
    inner: Inner
    #: How objects of the operation are completed, as far as that has been found out.
    plans: Plans = field(init=False, default_factory=dict)
    #: Documents by their keys: those that several fields ask for are read by one statement.
    documents: DataLoader[Reference, JsonObject | None] = field(init=False)

    def __post_init__(self) -> None:
        self.documents = DataLoader(load_fn=self._read_documents)

    def in_tenant(self) -> TenantFacts:
        if self.tenant is None:
            raise InvalidParameter(f"Members name the tenant in the header {TENANT_HEADER}.")
        return self.tenant

    async def ask(self, asked: Asked) -> JsonValue:
        """Answer a call of the data plane."""
        body = await asked.perform(self.principal, self.in_tenant())
        return text.read(body) if body else None

    async def ask_collection(
        self, handler: Handler, call: str, collection: str, body: bytes
    ) -> JsonObject:
        """Answer a POST to a collection, whose answer is an object."""
        path = f"/v1/collections/{collection}/{call}"
        found = await self.ask(Asked(handler, "POST", path, {"collection": collection}, body))
        return found if isinstance(found, dict) else {}

    async def _read_documents(self, wanted: list[Reference]) -> list[JsonObject | None]:
        by_collection: dict[str, list[str]] = {}
        for collection, key in wanted:
            by_collection.setdefault(collection, []).append(key)
        found: dict[Reference, JsonObject] = {}
        for collection, keys in by_collection.items():
            body = b'{"ids":[' + ",".join(keys).encode() + b"]}"
            answer = await self.ask_collection(
                documents.get_many, "documents:get", collection, body
            )
            found.update(_by_key(collection, answer))
        return [found.get(reference) for reference in wanted]


def _by_key(collection: str, answer: JsonObject) -> dict[Reference, JsonObject]:
    items = answer["items"]
    if not isinstance(items, list):
        raise TypeError("documents come as a list")
    return {reference(collection, item["id"]): item for item in items if isinstance(item, dict)}


def reference(collection: str, key: object) -> Reference:
    """Return what a document is known by while an operation runs, however its key is written."""
    return collection, Value.parse(json.dumps(key).encode()).ejson().decode()


Info: TypeAlias = strawberry.Info[Context, None]
#: What resolvers of types that are made at run time are given.
Resolving: TypeAlias = GraphQLResolveInfo[Context]
