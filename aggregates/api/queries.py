"""POST query: rows of an aggregate, as of one point in time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Collection

from aggregates import refusals
from aggregates.api.aggregate_access import aggregate_of
from aggregates.facts import READ, AggregateFacts
from data_plane.calls import Call
from data_plane.http import CallResponse
from data_plane.request_reader import as_object, parameters, read_body
from data_plane.times import rfc3339
from foundation.api.rendering import to_json
from rillbase_native import Value
from storage_engine.node.publication import UnexpectedReply
from storage_engine.node.wire import CommandRejected, Reply

#: Members that a subscription may have, too.
LIVE_MEMBERS = (
    "rollup",
    "filter",
    "from",
    "to",
    "group_by",
    "bucket",
    "order",
    "limit",
    "measures",
    "compare",
)
MEMBERS = (*LIVE_MEMBERS, "snapshot")


async def query(call: Call) -> CallResponse:
    """POST query."""
    parameters(call)
    aggregate = await aggregate_of(call, READ)
    query_text = as_text(as_object(await read_body(call), MEMBERS), MEMBERS)
    try:
        if not aggregate.is_view:
            return CallResponse(200, as_bytes(await aggregate.call("RB.AGG.QUERY", query_text)))
        result, as_of = await asyncio.gather(
            aggregate.call("RB.AGG.QUERY", query_text), _as_of(aggregate)
        )
    except CommandRejected as error:
        raise refusals.as_api_error(error) from None
    text = as_bytes(result)[:-1] + b',"as_of":' + to_json(as_of)
    if aggregate.notices:
        text += b',"notices":' + to_json(aggregate.notices)
    return CallResponse(200, text + b"}")


def as_text(body: Value, members: Collection[str]) -> bytes:
    """Return a query in the node's format."""
    parts = [
        to_json(name) + b":" + value.ejson()
        for name in members
        if (value := body.get(name)) is not None
    ]
    return b"{" + b",".join(parts) + b"}"


def as_bytes(reply: Reply) -> bytes:
    if not isinstance(reply, bytes):
        raise UnexpectedReply("expected text")
    return reply


async def _as_of(aggregate: AggregateFacts) -> str | None:
    """Return the time up to which a view includes all writes."""
    info = json.loads(as_bytes(await aggregate.call("RB.AGG.INFO")))
    # Positions in the collection's streams begin with milliseconds.
    moments = [int(position.partition("-")[0]) for _, position in info["positions"]]
    return rfc3339(min(moments)) if moments else None
