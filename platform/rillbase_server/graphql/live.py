"""Subscriptions: the frames of the live protocol, as payloads.

A subscription field opens the same subscription as `subscribe` in the native protocol, and converts
each of its frames to a payload, so the guarantees are the same. A payload's resume token is in the
`extensions` of the response.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Protocol, TypedDict, cast

import strawberry
from strawberry.scalars import JSON

from connections.outgoing import Sent
from connections.subscriptions import OpenSubscription, Subscriber, SubscriptionKinds
from foundation import bulk_budget
from foundation.errors import CATALOGUE, ApiError, Internal
from foundation.json_types import JsonObject, JsonValue
from rillbase_server.graphql.context import Context, Info, value_of
from rillbase_server.graphql.documents import (
    AnyDocument,
    Collection,
    LookedUp,
    QueryNotice,
    query_notice,
    row,
)

LIVE = "live"


@strawberry.enum(description="The type of a subscription's payload.")
class LiveKind(Enum):
    RESULT = "result"
    READY = "ready"
    EVENT = "event"
    RESET = "reset"
    STATUS = "status"
    NOTICE = "notice"


@strawberry.enum(name="Match", description="How a document's position in the result changed.")
class MatchType(Enum):
    ADD = "add"
    CHANGE = "change"
    CHANGE_INDEX = "changeIndex"
    REMOVE = "remove"


@strawberry.enum(description="Whether the result is currently known to be complete.")
class LiveState(Enum):
    LIVE = "live"
    STALE = "stale"


@strawberry.enum(
    description="Whether changes are sent one by one, or as the whole result each time."
)
class Deliver(Enum):
    EVENTS = "events"
    RESULT = "result"


def options(deliver: Deliver, throttle_ms: int) -> JsonObject:
    """Return the delivery options of `subscribe`."""
    return {"deliver": deliver.value, "throttle_ms": throttle_ms}


def message(collection: str, query: JsonObject, arguments: Mapping[str, object]) -> JsonObject:
    """Return the members of `subscribe` for a query, with the field's arguments."""
    deliver = Deliver(arguments.get("deliver", Deliver.EVENTS))
    window = {name: arguments.get(name) for name in ("offset", "limit", "resume")}
    return {
        "collection": collection,
        **query,
        **cast("JsonObject", window),
        "options": options(deliver, cast("int", arguments.get("throttleMs", 0))),
    }


@strawberry.type(description="The atomic batch to which a change belongs.")
class LiveTransaction:
    id: str
    index: int
    count: int

    @classmethod
    def of(cls, frame: JsonObject) -> LiveTransaction | None:
        """Return the group of a frame, if it has one."""
        txn = frame.get("txn")
        if not isinstance(txn, dict):
            return None
        return cls(id=str(txn["id"]), index=int(str(txn["index"])), count=int(str(txn["count"])))


@strawberry.type
class LiveMessage:
    """The members of the messages of all subscriptions."""

    kind: LiveKind
    part: int | None
    last: bool | None = strawberry.field(
        description="With RESULT: true for the last part of the result."
    )
    seq: int | None = strawberry.field(description="With EVENT: increases by one with each event.")
    match: MatchType | None
    state: LiveState | None
    reason: str | None
    resume: strawberry.Private[str | None]


class LiveMessageMembers(TypedDict):
    """The members of a `LiveMessage`."""

    kind: LiveKind
    part: int | None
    last: bool | None
    seq: int | None
    match: MatchType | None
    state: LiveState | None
    reason: str | None
    resume: str | None


def message_members(frame: JsonObject) -> LiveMessageMembers:
    """Return the common members of a frame."""
    match, state = frame.get("match"), frame.get("state")
    return LiveMessageMembers(
        kind=LiveKind(frame["type"]),
        part=cast("int | None", frame.get("part")),
        last=cast("bool | None", frame.get("last")),
        seq=cast("int | None", frame.get("seq")),
        match=None if match is None else MatchType(match),
        state=None if state is None else LiveState(state),
        reason=cast("str | None", frame.get("reason")),
        resume=cast("str | None", frame.get("resume")),
    )


@strawberry.type
class LiveRow(LiveMessage):
    """Additional members of messages whose rows have positions in an answer."""

    index: int | None
    old_index: int | None
    transaction: LiveTransaction | None
    notice: QueryNotice | None = strawberry.field(
        description="With NOTICE: documents that are missing from the result."
    )


class LiveRowMembers(LiveMessageMembers):
    """The members of a `LiveRow`."""

    index: int | None
    old_index: int | None
    transaction: LiveTransaction | None
    notice: QueryNotice | None


def row_members(frame: JsonObject) -> LiveRowMembers:
    """Return the members of a frame, including positions."""
    return LiveRowMembers(
        **message_members(frame),
        index=cast("int | None", frame.get("index")),
        old_index=cast("int | None", frame.get("old_index")),
        transaction=LiveTransaction.of(frame),
        notice=query_notice(frame) if frame["type"] == "notice" else None,
    )


@strawberry.type(description="A message of a live query.")
class LiveDocuments(LiveRow):
    items: list[AnyDocument] | None = strawberry.field(
        description="With RESULT: documents of the result. Part 0 replaces the previous result."
    )
    node: AnyDocument | None = strawberry.field(
        description="With EVENT: the document; a removed one has no content."
    )


class OperationConnection(Protocol):
    """The connection of an operation."""

    @property
    def kinds(self) -> SubscriptionKinds: ...

    async def register(self, feed: FrameBuffer) -> OpenSubscription:
        """Register a subscription, or raise `TooManySubscriptions`."""

    def unregister(self, subscription: OpenSubscription) -> None:
        """Unregister a subscription."""

    def subscriber(self) -> Subscriber: ...


class FrameBuffer:
    """The frames of one subscription that its client has not received yet."""

    def __init__(self) -> None:
        self._frames: deque[tuple[bytes, Sent | None]] = deque()
        self._wake = asyncio.Event()
        self._over = False

    def put(self, frame: bytes, sent: Sent | None = None) -> None:
        self._frames.append((frame, sent))
        self._wake.set()

    def finish(self) -> None:
        """End the stream after the waiting frames."""
        self._over = True
        self._wake.set()

    async def frames(self) -> AsyncGenerator[JsonObject, None]:
        """Yield frames. A frame counts as received when the next one is requested."""
        while True:
            while self._frames:
                frame, sent = self._frames.popleft()
                yield json.loads(frame)
                if sent is not None:
                    sent(len(frame))
            if self._over:
                return
            self._wake.clear()
            await self._wake.wait()


@dataclass(slots=True)
class LiveContext(Context):
    """An operation on a connection."""

    connection: OperationConnection


async def watch(context: Context, message: JsonObject) -> AsyncGenerator[LiveDocuments, None]:
    """Open a subscription to documents and yield its payloads, until an error ends it."""
    async for frame in frames(context, message):
        yield payload(str(message["collection"]), frame)


async def frames(context: Context, message: JsonObject) -> AsyncGenerator[JsonObject, None]:
    """Open a subscription and yield its frames, until an error ends it."""
    if not isinstance(context, LiveContext):
        raise TypeError("subscriptions require a connection")
    connection = context.connection
    members = {name: value for name, value in message.items() if value is not None}
    value = value_of({"type": "subscribe", "id": LIVE, **members})
    feed = FrameBuffer()
    subscription = await connection.register(feed)
    try:
        kind = connection.kinds.of(value)
        subscriber = connection.subscriber()
        opened = kind.open(subscriber, value, subscription)
        subscription.begun(
            await bulk_budget.subscription_starts.metered(subscriber.tenant.id, opened)
        )
        async for frame in feed.frames():
            if frame["type"] == "end":
                _raise(frame["error"])
                return
            yield frame
    finally:
        connection.unregister(subscription)


def payload(collection: str, frame: JsonObject) -> LiveDocuments:
    """Convert a frame to a payload."""
    items = items_of(frame)
    envelope = {**frame, "id": frame.get("key")}
    return LiveDocuments(
        **row_members(frame),
        items=None if items is None else [row(collection, item) for item in items],
        node=row(collection, envelope) if frame["type"] == "event" else None,
    )


def items_of(frame: JsonObject) -> list[JsonObject] | None:
    """Return the rows of a frame."""
    items = frame.get("items")
    if not isinstance(items, list):
        return None
    return [item if isinstance(item, dict) else {} for item in items]


def _raise(problem: JsonValue) -> None:
    """Raise the error that ended a subscription, unless its client ended it."""
    if isinstance(problem, dict):
        family: type[ApiError] = CATALOGUE.get(str(problem.get("code")), Internal)
        raise family(str(problem.get("detail", "")))


@strawberry.type
class DocumentSubscriptions:
    @strawberry.subscription(
        description="Subscribe to a query: its current result, then each change to it."
    )
    async def documents(
        self,
        info: Info,
        collection: Collection,
        filter: JSON | None = None,  # noqa: A002 -- the API's name
        sort: JSON | None = None,
        projection: JSON | None = None,
        lookup: LookedUp = None,
        offset: int | None = None,
        limit: int | None = None,
        resume: str | None = None,
        deliver: Deliver = Deliver.EVENTS,
        throttle_ms: int = 0,
    ) -> AsyncGenerator[LiveDocuments, None]:
        message: dict[str, object] = {
            "collection": collection,
            "filter": filter,
            "sort": sort,
            "projection": projection,
            "lookup": lookup,
            "offset": offset,
            "limit": limit,
            "resume": resume,
            "options": options(deliver, throttle_ms),
        }
        async for change in watch(info.context, cast("JsonObject", message)):
            yield change
