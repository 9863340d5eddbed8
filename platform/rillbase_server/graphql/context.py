"""What the fields of one operation share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias, TypeVar, cast

import strawberry
from graphql import GraphQLResolveInfo
from strawberry.dataloader import DataLoader

from data_plane.http import CallHead
from data_plane.internal_call import Handler, InternalCall
from data_plane.request_reader import refusing
from documents.api import documents, queries
from documents.store.queries import MAX_LIMIT
from foundation.api.rendering import to_json
from foundation.errors import FieldProblem, InvalidBody, InvalidParameter
from foundation.json_types import JsonObject, JsonValue
from rillbase_native import Value
from rillbase_server.graphql import text
from rillbase_server.graphql.internal_request import InternalRequests
from rillbase_server.graphql.plans import Plans
from tenants.credentials.authenticate import TENANT_HEADER
from tenants.credentials.facts import TenantFacts
from tenants.principals import Principal

T = TypeVar("T")

#: A collection, and a key as relaxed Extended JSON.
Reference: TypeAlias = tuple[str, str]
#: What one query looks up at most.
MAX_LOOKUPS = 8
_TOO_LONG = "A number has too many digits."


@dataclass(frozen=True, slots=True, order=True)
class FieldLookup:
    """Documents of a collection whose `_id`s stand in a field."""

    collection: str
    local: str

    @property
    def name(self) -> str:
        """Under which they are shown: always the same, and no name that documents are likely to
        have. Names have no dots.
        """
        return f"{self.collection}:{self.local.replace('.', '/')}"

    @property
    def body(self) -> JsonObject:
        """As the REST API has it."""
        return {"from": self.collection, "local": self.local, "as": self.name}


@dataclass(slots=True)
class Context:
    """One operation: who asks, in which tenant, and what has been read for it already."""

    principal: Principal
    #: None: a member who named no tenant, and sees the control plane only.
    tenant: TenantFacts | None
    head: CallHead
    inner: InternalRequests
    #: How objects of the operation are completed, as far as that has been found out.
    plans: Plans = field(init=False, default_factory=dict)
    #: Documents by their keys: those that several fields ask for are read by one statement.
    documents: DataLoader[Reference, JsonObject | None] = field(init=False)
    #: What documents refer to that came without it.
    lookups: DataLoader[tuple[Reference, FieldLookup], JsonValue] = field(init=False)

    def __post_init__(self) -> None:
        self.documents = DataLoader(load_fn=self._read_documents)
        self.lookups = DataLoader(load_fn=self._look_up)

    def forget(self) -> None:
        """Forget what has been read: something is about to change."""
        self.documents.clear_all()
        self.lookups.clear_all()

    def in_tenant(self) -> TenantFacts:
        if self.tenant is None:
            raise InvalidParameter(
                f"Name the tenant in the header {TENANT_HEADER}: a member may belong to several."
            )
        return self.tenant

    async def ask(self, call: InternalCall) -> JsonValue:
        """Answer a call of the data plane."""
        body = await call.perform(self.principal, self.in_tenant())
        return text.read(body) if body else None

    async def ask_collection(
        self, handler: Handler, call: str, collection: str, body: bytes
    ) -> JsonObject:
        """Answer a POST to a collection, whose answer is an object."""
        path = f"/v1/collections/{collection}/{call}"
        answer = await self.ask(
            InternalCall(handler, "POST", path, {"collection": collection}, body)
        )
        return answer if isinstance(answer, dict) else {}

    async def _read_documents(self, references: list[Reference]) -> list[JsonObject | None]:
        by_collection: dict[str, list[str]] = {}
        for collection, key in references:
            by_collection.setdefault(collection, []).append(key)
        by_reference: dict[Reference, JsonObject] = {}
        for collection, keys in by_collection.items():
            body = b'{"ids":[' + ",".join(keys).encode() + b"]}"
            answer = await self.ask_collection(
                documents.get_many, "documents:get", collection, body
            )
            by_reference.update(_by_key(collection, answer))
        return [by_reference.get(reference) for reference in references]

    async def _look_up(self, references: list[tuple[Reference, FieldLookup]]) -> list[JsonValue]:
        by_collection: dict[str, tuple[dict[str, None], dict[FieldLookup, None]]] = {}
        for (collection, key), lookup in references:
            keys, lookups = by_collection.setdefault(collection, ({}, {}))
            keys[key] = lookups[lookup] = None
        results: dict[tuple[Reference, FieldLookup], JsonValue] = {}
        for collection, (keys, lookups) in by_collection.items():
            for some_keys in batched(keys, MAX_LIMIT):
                for some in batched(lookups, MAX_LOOKUPS):
                    results |= await self._look_up_some(collection, some_keys, some)
        return [results.get(each) for each in references]

    async def _look_up_some(
        self, collection: str, keys: Sequence[str], lookups: Sequence[FieldLookup]
    ) -> dict[tuple[Reference, FieldLookup], JsonValue]:
        """Read what some documents refer to."""
        rest = {
            "lookup": [lookup.body for lookup in lookups],
            "projection": {lookup.name: 1 for lookup in lookups},
            "limit": len(keys),
        }
        among = b'{"filter":{"_id":{"$in":[' + ",".join(keys).encode() + b"]}},"
        answer = await self.ask_collection(
            queries.query, "query", collection, among + to_json(rest)[1:]
        )
        return {
            (source, lookup): cast("JsonObject", item["document"]).get(lookup.name)
            for source, item in _by_key(collection, answer).items()
            for lookup in lookups
        }


def batched(items: Iterable[T], most: int) -> Iterator[tuple[T, ...]]:
    """Yield items in tuples of at most so many."""
    rest = iter(items)
    while some := tuple(islice(rest, most)):
        yield some


def _by_key(collection: str, answer: JsonObject) -> dict[Reference, JsonObject]:
    items = answer["items"]
    if not isinstance(items, list):
        raise TypeError("expected a list of documents")
    return {reference(collection, item["id"]): item for item in items if isinstance(item, dict)}


def reference(collection: str, key: object) -> Reference:
    """Return what a document is known by while an operation runs, however its key is written."""
    return collection, value_of(key, "/key").ejson().decode()


def value_of(given: object, pointer: str = "") -> Value:
    """Return what a client gave as Extended JSON, or raise what is wrong with it there."""
    try:
        written = to_json(given)
    except ValueError:
        # A whole number of more digits than Python writes.
        raise InvalidBody(errors=[FieldProblem(pointer, "invalid", _TOO_LONG)]) from None
    with refusing(pointer):
        return Value.parse_request(written)


Info: TypeAlias = strawberry.Info[Context, None]
#: What resolvers of types that are made at run time are given.
Resolving: TypeAlias = GraphQLResolveInfo[Context]
