"""Fields of aggregates: a mutation adds events, a query reads rows, a subscription follows them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated, cast

import strawberry
from strawberry.scalars import JSON

from aggregates.api import events, queries
from data_plane.http.body import JSON as MEDIA_TYPE
from data_plane.internal_call import Handler, InternalCall
from foundation.api.idempotency import HEADER as IDEMPOTENCY_HEADER
from foundation.api.rendering import exact_json
from foundation.json_types import JsonObject, JsonValue
from rillbase_server.graphql.context import Info
from rillbase_server.graphql.live import (
    LiveMessage,
    LiveTransaction,
    frames,
    items_of,
    message_members,
)

Aggregate = Annotated[str, strawberry.argument(description="The aggregate's name.")]


@strawberry.input(name="RowQuery", description="A query of an aggregate, as in the REST API.")
class AggregateRowQuery:
    rollup: list[str] | None = None
    filter: JSON | None = strawberry.field(default=None, description="A filter on the dimensions.")
    from_: str | None = strawberry.field(default=None, name="from")
    to: str | None = None
    group_by: list[str] | None = None
    bucket: str | None = None
    order: JSON | None = None
    limit: int | None = None
    measures: list[str] | None = None
    compare: str | None = None

    def body(self) -> JsonObject:
        """Return the members of the REST call's body."""
        members = {name: getattr(self, name) for name in queries.LIVE_MEMBERS if name != "from"}
        members["from"] = self.from_
        return {name: value for name, value in members.items() if value is not None}


@strawberry.type(description="Rows as of one point in time.")
class AggregateRows:
    rows: list[JSON]
    snapshot: str
    as_of: str | None = strawberry.field(
        description="Of a view: every write before this time is included."
    )


@strawberry.type(description="Result of adding events.")
class AddedEvents:
    applied: int
    repeated: int


@strawberry.type(description="A message of a live aggregate.")
class LiveRows(LiveMessage):
    rows: list[JSON] | None = strawberry.field(
        description="With RESULT: rows of the result. Part 0 replaces the previous result."
    )
    key: JSON | None = strawberry.field(description="With EVENT: the fields that identify the row.")
    row: JSON | None = strawberry.field(description="With EVENT: the row; null if it was removed.")
    transaction: LiveTransaction | None


def _call(handler: Handler, name: str, call: str, body: JsonValue) -> InternalCall:
    return InternalCall(
        handler,
        "POST",
        f"/v1/aggregates/{name}/{call}",
        {"aggregate": name},
        exact_json(body),
        {"Content-Type": MEDIA_TYPE},
    )


@strawberry.type
class AggregateQueries:
    @strawberry.field(description="Rows of an aggregate.")
    async def aggregate_rows(
        self,
        info: Info,
        aggregate: Aggregate,
        query: AggregateRowQuery | None = None,
        snapshot: str | None = None,
    ) -> AggregateRows:
        body = query.body() if query is not None else {}
        if snapshot is not None:
            body["snapshot"] = snapshot
        result = await info.context.call_data_plane(_call(queries.query, aggregate, "query", body))
        answer = cast("JsonObject", result)
        return AggregateRows(
            rows=cast("list[JSON]", answer["rows"]),
            snapshot=str(answer["snapshot"]),
            as_of=cast("str | None", answer.get("as_of")),
        )


@strawberry.type
class AggregateMutations:
    @strawberry.mutation(description="Add events to an aggregate, all or none.")
    async def add_events(
        self,
        info: Info,
        aggregate: Aggregate,
        events: list[JSON],
        idempotency_key: str | None = None,
    ) -> AddedEvents:
        call = _call(_add, aggregate, "events", cast("JsonValue", events))
        if idempotency_key is not None:
            call.headers[IDEMPOTENCY_HEADER] = idempotency_key
        answer = cast("JsonObject", await info.context.call_data_plane(call))
        return AddedEvents(
            applied=int(str(answer["applied"])), repeated=int(str(answer["repeated"]))
        )


#: The argument of this name hides the module.
_add = events.add


@strawberry.type
class AggregateSubscriptions:
    @strawberry.subscription(
        description="Subscribe to the rows of an aggregate: the current ones, then each change."
    )
    async def aggregate_rows(
        self,
        info: Info,
        aggregate: Aggregate,
        query: AggregateRowQuery | None = None,
        resume: str | None = None,
    ) -> AsyncGenerator[LiveRows, None]:
        body = query.body() if query is not None else {}
        message = {**body, "aggregate": aggregate, "resume": resume}
        async for frame in frames(info.context, message):
            yield _payload(frame)


def _payload(frame: JsonObject) -> LiveRows:
    """Convert a frame to a payload."""
    items = items_of(frame)
    return LiveRows(
        **message_members(frame),
        rows=None if items is None else [cast("JSON", item["document"]) for item in items],
        key=cast("JSON | None", frame.get("key")),
        row=cast("JSON | None", frame.get("document")),
        transaction=LiveTransaction.of(frame),
    )
