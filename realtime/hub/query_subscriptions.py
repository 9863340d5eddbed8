"""The subscription kind for queries of documents."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple
from uuid import UUID

from connections.subscriptions import Subscriber, SubscriptionOutlet
from documents.backend import Backend
from documents.store import facts
from documents.store.access import access_of
from documents.store.facts import CollectionFacts
from documents.store.lookups import sides_of
from foundation.errors import ApiError, NotFound, Overloaded, Unavailable
from foundation.json_types import JsonObject
from foundation.names import NAME_PATTERN
from realtime.hub.process import HubProcess
from realtime.hub.running_hub import RunningHub
from realtime.registration import subscribe_request
from realtime.registration.registration import CollectionReference, slack_for
from realtime.registration.subscribe_request import MATCHES, QuerySubscribeRequest
from rillbase_native import LiveQuery, Value, query_partition
from tenants import error_log

READ = "documents:read"
_SHOWN = ("filter", "group", "lookup", "sort", "offset", "limit")
_NAME = re.compile(rf"{NAME_PATTERN}\Z")
#: The figures of a subscription that is not attached.
_STARTING: JsonObject = {
    "state": "starting",
    "events": 0,
    "waiting": 0,
    "waiting_bytes": 0,
    "result_bytes": 0,
    "lag_ms": None,
}


class QueryDependency(NamedTuple):
    """What a query depends on: a collection, and the version of its rules (0: of none)."""

    tenant_id: UUID
    collection: bytes
    rules_version: int


async def _readable_collection(
    subscriber: Subscriber, request: QuerySubscribeRequest, *, fresh: bool = False
) -> CollectionFacts:
    """Return the collection of a query, if the caller may read collections."""
    subscriber.principal.require_scope(READ)
    subscriber.principal.require_collection(request.collection)
    return await facts.find(subscriber.tenant.id, request.collection, fresh=fresh)


class QuerySubscriptionKind:
    """The kind of subscription that `collection` names."""

    member = "collection"

    def __init__(self, process: HubProcess) -> None:
        self.process = process
        self._numbers = itertools.count(1)
        #: By the queries' dependencies and the machine's number, so the cost of checks depends on
        #: the number of collections, not of subscriptions.
        self.by_reads: dict[QueryDependency, dict[int, QuerySubscription]] = {}

    def add(self, watched: QuerySubscription, query: LiveQuery) -> None:
        """Add a subscription."""
        tenant = watched.subscriber.tenant.id
        sides = [
            QueryDependency(tenant, collection, version) for collection, version, _ in query.sides()
        ]
        watched.reads = (QueryDependency(tenant, query.collection, query.rules_version), *sides)
        for reads in watched.reads:
            self.by_reads.setdefault(reads, {})[watched.number] = watched

    def discard(self, watched: QuerySubscription) -> None:
        """Remove a subscription."""
        for reads in watched.reads:
            others = self.by_reads.get(reads, {})
            others.pop(watched.number, None)
            if not others:
                self.by_reads.pop(reads, None)
        watched.reads = ()

    async def open(
        self, subscriber: Subscriber, message: Value, outlet: SubscriptionOutlet
    ) -> QuerySubscription:
        """Open a subscription, or raise an error."""
        request = subscribe_request.read(message)
        if not _NAME.match(request.collection):
            raise NotFound(f"The collection {request.collection!r} does not exist.")
        tenant_id = subscriber.tenant.id
        backend = (await _readable_collection(subscriber, request)).backend
        running = await self.process.running(tenant_id, backend)
        if not running.hub.has_room():
            raise Overloaded(headers={"Retry-After": "5"})
        watched = QuerySubscription(
            self, running, next(self._numbers), request, message, outlet, subscriber
        )
        await watched.begin()
        if running is not (current := await self.process.running(tenant_id, backend)):
            # The tenant's dedicated grid was created or removed meanwhile.
            watched.change(current)
        return watched

    async def settle(self) -> None:
        """Move subscriptions to the current hubs of their tenants."""
        for reads in list(self.by_reads):
            if not self.process.has_dedicated_hub(reads.tenant_id):
                continue
            try:
                running = await self.process.running(reads.tenant_id, Backend.POSTGRES)
            except Unavailable:
                # The next pass tries again; others must not wait for it.
                continue
            for watched in list(self.by_reads.get(reads, {}).values()):
                if watched.running is not running and watched.backend == Backend.POSTGRES:
                    watched.change(running)


@dataclass(slots=True)
class QuerySubscription:
    """One subscription to a query of documents."""

    kind: QuerySubscriptionKind
    running: RunningHub
    number: int
    request: QuerySubscribeRequest
    message: Value
    outlet: SubscriptionOutlet
    subscriber: Subscriber
    query: LiveQuery | None = None
    #: The key under which its kind knows it.
    reads: tuple[QueryDependency, ...] = ()
    _described: JsonObject | None = None

    @property
    def backend(self) -> Backend:
        """The backend of its collections."""
        return self.running.grid.backend

    @property
    def source(self) -> CollectionReference:
        return CollectionReference(self.subscriber.tenant.id, self.request.collection)

    async def begin(self) -> None:
        """Attach to the query, restricted by the caller's access rule."""
        self.query, backend = await self._restricted_query()
        if backend != self.backend:
            raise NotFound("The collection has been replaced.")
        self._attach(self.query, resume=self.request.resume)

    async def judge(self, subscriber: Subscriber) -> None:
        """Continue with the caller's current permissions, under the current rules."""
        self.subscriber = subscriber
        if self.number not in self.running.attached:
            return
        try:
            query, backend = await self._restricted_query(fresh=True)
        except ApiError as error:
            self.end(error)
            return
        if backend != self.backend:
            await self.follow(backend)
            return
        if self.query is not None and query.hash != self.query.hash:
            self.close()
            self.query, self._described = query, None
            self._attach(query, reset="rules_changed")

    async def follow(self, backend: Backend) -> None:
        """Continue in the hub of the backend that the collection has moved to. If it cannot serve
        yet, the next check tries again.
        """
        try:
            running = await self.kind.process.running(self.subscriber.tenant.id, backend)
        except Unavailable:
            return
        try:
            query, _ = await self._restricted_query(fresh=True)
        except ApiError as error:
            self.end(error)
            return
        self.query, self._described = query, None
        self.change(running)

    def change(self, running: RunningHub) -> None:
        """Continue in another hub, from the query's current result."""
        query = self.query
        self.close()
        self.running = running
        if query is not None:
            self._attach(query, reset="moved")

    def close(self) -> None:
        """Stop sending."""
        self.kind.discard(self)
        if self.running.attached.pop(self.number, None) is not None:
            self.running.hub.detach(self.number)
            self.running.wake()

    def unsubscribed(self) -> None:
        """Do nothing: a query without subscribers ends after a while."""

    def drained(self, frames: int, size_bytes: int) -> None:
        """Account for what has been sent to the client."""
        self.running.drained(self.number, frames, size_bytes)

    def describe(self) -> JsonObject:
        """Return the collection and the query."""
        if self._described is None:
            values = ((name, self.message.get(name)) for name in _SHOWN)
            self._described = {
                "collection": self.request.collection,
                "query": {
                    name: json.loads(value.ejson()) for name, value in values if value is not None
                },
                "query_hash": self.query.hash.hex() if self.query is not None else "",
            }
        return self._described

    def figures(self) -> JsonObject:
        """Return its state and its counts."""
        figures = self.running.hub.figures(self.number)
        if figures is None:
            return {**_STARTING}
        lag_us = figures.lag_us
        return {
            "state": figures.state,
            "events": figures.events,
            "waiting": figures.waiting,
            "waiting_bytes": figures.waiting_bytes,
            "result_bytes": figures.result_bytes,
            "lag_ms": None if lag_us is None else round(lag_us / 1000, 3),
        }

    async def _restricted_query(self, *, fresh: bool = False) -> tuple[LiveQuery, Backend]:
        """Return the query restricted by the caller's access rule, and the backend of its
        collections, or raise an error.
        """
        principal, request = self.subscriber.principal, self.request
        tenant_id = self.subscriber.tenant.id
        collection = await _readable_collection(self.subscriber, request, fresh=fresh)
        access = access_of(collection, principal)
        rule = None if access is None else access.require("read")
        sides = await sides_of(tenant_id, request.lookups, principal, fresh=fresh)
        facts.require_one_backend([collection, *(side.collection for side in sides)])
        query = LiveQuery(
            collection.tenant_id.bytes,
            collection.raw,
            request.filter if rule is None else request.filter.and_(rule),
            request.sort,
            self.message.get("sort"),
            offset=request.offset,
            limit=request.limit,
            rules_version=0 if rule is None else collection.rules_version,
            # All documents of groups are kept, however few groups are shown.
            slack=0 if request.group else slack_for(request.offset, request.limit),
            group=request.group,
            lookups=request.lookups,
            # Changes to hidden fields of looked-up documents are not changes: nodes have to know
            # the projection.
            projection=self.message.get("projection") if request.lookups else None,
            sides=[
                (
                    side.collection.raw,
                    0 if side.rule is None else side.collection.rules_version,
                    side.rule,
                )
                for side in sides
            ],
            rule=rule,
        )
        return query, collection.backend

    def _attach(
        self, query: LiveQuery, *, resume: str | None = None, reset: str | None = None
    ) -> None:
        options = self.request.options
        self.kind.add(self, query)
        self.running.attached[self.number] = self
        self.running.hub.attach(
            self.number,
            self.subscriber.name,
            query,
            query_partition(query.hash, self.running.grid.query_partitions),
            holder=self._holder(),
            projection=None if query.looks_up else self.request.projection,
            whole_results=options.deliver == "result",
            throttle_ms=options.throttle_ms,
            muted=[match not in options.events for match in MATCHES],
            canonical=self.subscriber.canonical,
            resume=resume,
            reset=reset,
            connection=int.from_bytes(sha256(self.subscriber.connection.encode()).digest()[:8]),
        )
        self.running.wake()

    def _holder(self) -> bytes:
        """Return the owner of this subscription's resume tokens: the tenant and the principal."""
        actor = self.subscriber.principal.actor
        return sha256(f"{self.subscriber.tenant.id}|{actor}".encode()).digest()[:16]

    def end(self, error: ApiError) -> None:
        """End, and send the client the error."""
        self.note(error)
        self.close()
        problem = json.dumps(error.problem()).encode()
        name = json.dumps(self.subscriber.name).encode()
        self.outlet.send(b'{"type":"end","id":' + name + b',"error":' + problem + b"}")
        self.outlet.ended()

    def note(self, error: ApiError) -> None:
        """Record in the tenant's error log why the subscription ends."""
        error_log.note_error(
            self.subscriber.tenant.id,
            error_log.Area.LIVE,
            error,
            place=f"subscription to {self.request.collection}",
            actor=self.subscriber.principal.actor,
        )

    def ended(self) -> None:
        """Forget the subscription: the machine has sent its last frame."""
        self.kind.discard(self)
        self.outlet.ended()
