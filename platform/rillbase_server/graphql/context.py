"""The context that the fields of one operation share."""

from __future__ import annotations

from collections.abc import Coroutine, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias, TypeVar, cast

import orjson
import strawberry
from graphql import GraphQLResolveInfo
from strawberry.dataloader import DataLoader

from data_plane.http import CallHead
from data_plane.internal_call import Handler, InternalCall
from data_plane.request_reader import refusing
from documents.api import documents, queries
from documents.store.large_results import RENDERED_BYTES
from documents.store.queries import MAX_LIMIT
from foundation import bulk_budget
from foundation.api.idempotency import HEADER as IDEMPOTENCY_HEADER
from foundation.api.rendering import exact_json
from foundation.bulk_budget import FreeTime
from foundation.errors import FieldProblem, InvalidBody, InvalidParameter
from foundation.json_types import JsonObject, JsonValue
from foundation.per_loop import PerLoop
from foundation.turns import TurnScheduler
from rillbase_native import Value
from rillbase_server.graphql.internal_request import InternalRequests
from rillbase_server.graphql.plans import Plans
from tenants.credentials.authenticate import TENANT_HEADER
from tenants.credentials.facts import TenantFacts
from tenants.principals import Principal

T = TypeVar("T")

#: A collection, and a key as relaxed Extended JSON.
Reference: TypeAlias = tuple[str, str]
#: CPU time of an operation that is not charged to its tenant's share of bulk work, and calls that
#: do not wait for a turn: small operations are not bulk work.
FREE_S, FREE_CALLS = 0.002, 2
#: Further calls that a process runs concurrently, and how long a turn stays unused after a call,
#: relative to it, while other tenants are active: PostgreSQL and the nodes work for it, too.
AT_ONCE, PAUSE = 32, 3
#: Maximum number of lookups of one query.
MAX_LOOKUPS = 8
_turns = PerLoop(lambda: TurnScheduler(AT_ONCE, AT_ONCE, bulk_budget.tenants, rests=PAUSE))
_TOO_LONG = "A number has too many digits."


@dataclass(frozen=True, slots=True, order=True)
class FieldLookup:
    """A lookup of the documents of a collection to which a field refers by `_id`."""

    collection: str
    local: str

    @property
    def name(self) -> str:
        """The name of the result: deterministic, without dots, and unlikely to be a name in
        documents.
        """
        return f"{self.collection}:{self.local.replace('.', '/')}"

    @property
    def body(self) -> JsonObject:
        """Its form in the REST API."""
        return {"from": self.collection, "local": self.local, "as": self.name}


@dataclass(slots=True)
class Context:
    """One operation: its caller, its tenant, and what it has read so far."""

    principal: Principal
    #: None for a member who named no tenant, and can use only the control plane.
    tenant: TenantFacts | None
    head: CallHead
    inner: InternalRequests
    free: FreeTime = field(init=False)
    calls: int = field(init=False, default=0)
    #: The plans of the operation's objects that have been determined so far.
    plans: Plans = field(init=False, default_factory=dict)
    #: Documents by key. Those that several fields request are read in one statement.
    documents: DataLoader[Reference, JsonObject | None] = field(init=False)
    #: Referenced documents that were not included with the referring ones.
    lookups: DataLoader[tuple[Reference, FieldLookup], JsonValue] = field(init=False)

    def __post_init__(self) -> None:
        self.free = FreeTime(FREE_S)
        self.documents = DataLoader(load_fn=self._read_documents)
        self.lookups = DataLoader(load_fn=self._look_up)

    @property
    def party(self) -> Hashable:
        """Whom its computations are charged to."""
        principal = self.principal
        caller_id = principal.user_id or principal.credential_id
        return caller_id if self.tenant is None else self.tenant.id

    def forget(self) -> None:
        """Discard what has been read, before a change."""
        self.documents.clear_all()
        self.lookups.clear_all()

    def in_tenant(self) -> TenantFacts:
        if self.tenant is None:
            raise InvalidParameter(
                f"Name the tenant in the header {TENANT_HEADER}: a member may belong to several."
            )
        return self.tenant

    async def call_data_plane(self, call: InternalCall) -> JsonValue:
        """Make a call of the data plane."""
        return await self.metered(self._call_data_plane(call))

    async def _call_data_plane(self, call: InternalCall) -> JsonValue:
        tenant = self.in_tenant()
        self.calls += 1
        if self.calls <= FREE_CALLS and not self.free.is_used:
            body = await call.perform(self.principal, tenant)
        else:
            async with _turns.get().turn(tenant.id):
                body = await call.perform(self.principal, tenant)
        # The fields of a large response take longer than reading it did.
        if self.free.is_used or len(body) > RENDERED_BYTES:
            await bulk_budget.tenants.wait(tenant.id)
        value: JsonValue = orjson.loads(body) if body else None
        return value

    async def metered(self, work: Coroutine[object, None, T]) -> T:
        """Do a part of the operation's work, and charge its CPU time beyond what is free."""
        return await bulk_budget.tenants.metered(self.party, work, self.free)

    async def post_to_collection(
        self,
        handler: Handler,
        call: str,
        collection: str,
        body: bytes,
        idempotency_key: str | None = None,
    ) -> JsonObject:
        """POST to a collection; the response is an object."""
        path = f"/v1/collections/{collection}/{call}"
        request = InternalCall(handler, "POST", path, {"collection": collection}, body)
        if idempotency_key is not None:
            request.headers[IDEMPOTENCY_HEADER] = idempotency_key
        answer = await self.call_data_plane(request)
        return answer if isinstance(answer, dict) else {}

    async def _read_documents(self, references: list[Reference]) -> list[JsonObject | None]:
        by_collection: dict[str, list[str]] = {}
        for collection, key in references:
            by_collection.setdefault(collection, []).append(key)
        by_reference: dict[Reference, JsonObject] = {}
        for collection, keys in by_collection.items():
            body = b'{"ids":[' + ",".join(keys).encode() + b"]}"
            answer = await self.post_to_collection(
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
            for key_batch in batched(keys, MAX_LIMIT):
                for lookup_batch in batched(lookups, MAX_LOOKUPS):
                    results |= await self._read_lookups(collection, key_batch, lookup_batch)
        return [results.get(reference) for reference in references]

    async def _read_lookups(
        self, collection: str, keys: Sequence[str], lookups: Sequence[FieldLookup]
    ) -> dict[tuple[Reference, FieldLookup], JsonValue]:
        """Read the documents to which some documents refer."""
        rest = {
            "lookup": [lookup.body for lookup in lookups],
            "projection": {lookup.name: 1 for lookup in lookups},
            "limit": len(keys),
        }
        filter_part = b'{"filter":{"_id":{"$in":[' + ",".join(keys).encode() + b"]}},"
        answer = await self.post_to_collection(
            queries.query, "query", collection, filter_part + exact_json(rest)[1:]
        )
        return {
            (source, lookup): cast("JsonObject", item["document"]).get(lookup.name)
            for source, item in _by_key(collection, answer).items()
            for lookup in lookups
        }


def batched(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """Yield items in tuples of limited length."""
    remaining = iter(items)
    while batch := tuple(islice(remaining, size)):
        yield batch


def _by_key(collection: str, answer: JsonObject) -> dict[Reference, JsonObject]:
    items = answer["items"]
    if not isinstance(items, list):
        raise TypeError("expected a list of documents")
    return {reference(collection, item["id"]): item for item in items if isinstance(item, dict)}


def reference(collection: str, key: object) -> Reference:
    """Return a canonical reference to a document, however its key is written."""
    return collection, value_of(key, "/key").ejson().decode()


def value_of(given: object, pointer: str = "") -> Value:
    """Parse a client's Extended JSON, or raise `InvalidBody`."""
    try:
        written = exact_json(given)
    except ValueError:
        # An integer with more digits than Python converts.
        raise InvalidBody(errors=[FieldProblem(pointer, "invalid", _TOO_LONG)]) from None
    with refusing(pointer):
        return Value.parse_request(written)


Info: TypeAlias = strawberry.Info[Context, None]
#: The `info` argument of resolvers of generated types.
Resolving: TypeAlias = GraphQLResolveInfo[Context]
