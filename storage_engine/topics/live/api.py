"""GET /v1/topics/{topic}/subscriptions/{subscription}/live: the matches of a subscription, as they
are published.


The id of an event is its position, so an EventSource that reconnects resumes without a gap.
"""

from __future__ import annotations

import re

from connections.callers import ConnectionCaller
from connections.connection_registry import ConnectionRegistry
from connections.event_stream_consumer import EventStreams
from data_plane.calls import Call
from data_plane.http import CallResponse, HttpOperation, openapi
from data_plane.request_reader import EJSON_PARAMETER, parameters, streams_canonical
from foundation.api.rendering import to_json
from foundation.errors import FieldProblem, InvalidParameter
from foundation.json_types import JsonObject, JsonValue
from rillbase_native import Value
from storage_engine.topics import facts
from storage_engine.topics.api.operations import SUBSCRIPTION_PARAMETER, TAG, TOPIC_PARAMETER
from storage_engine.topics.facts import READ
from storage_engine.topics.live.kind import TopicSubscriptionKind
from tenants.credentials.credential_reference import reference_of

ROUTE = "/v1/topics/{topic}/subscriptions/{subscription}/live"
LAST_EVENT_ID = "Last-Event-ID"
_POSITION = re.compile(r"[A-Za-z0-9_-]{1,100}\Z")
#: An event's position precedes everything that a publisher has written.
_EVENT_ID = re.compile(
    rb'\A\{"type":"event","id":"[^"]*","seq":\d+,"match":"add","position":"([^"]*)"'
)


class TopicStreams:
    """Responds with the matches of subscriptions."""

    def __init__(self, kind: TopicSubscriptionKind, registry: ConnectionRegistry) -> None:
        self._kind = kind
        self._streams = EventStreams(registry)

    async def live(self, call: Call) -> CallResponse:
        """Respond to an authenticated caller."""
        query = parameters(call, "after", EJSON_PARAMETER)
        caller = ConnectionCaller(
            call.principal, call.tenant, reference_of(call.principal, call.head)
        )
        return self._answer(caller, call, query)

    async def by_ticket(self, caller: ConnectionCaller, call: Call) -> CallResponse:
        """Respond to the holder of a ticket, whose query replaces the path's parameters."""
        return self._answer(caller, call, call.parameters)

    def _answer(
        self, caller: ConnectionCaller, call: Call, parameters: dict[str, str]
    ) -> CallResponse:
        facts.allow(call.principal, READ)
        return self._streams.answer(
            call,
            caller,
            self._kind,
            _message(call, parameters.get("after")),
            event_id=_EVENT_ID,
            canonical=streams_canonical(call, parameters),
        )


def _message(call: Call, after: str | None) -> Value:
    """Return the `subscribe` message that corresponds to a URL."""
    message: JsonObject = {
        "topic": call.parameters["topic"],
        "subscription_id": call.parameters["subscription"],
    }
    position = call.head.headers.get(LAST_EVENT_ID, after)
    if position is not None:
        if not _POSITION.match(position):
            problem = FieldProblem("after", "invalid", "A position, as in events.")
            raise InvalidParameter(errors=[problem])
        message["after"] = position
    return Value.parse(to_json(message))


_PARAMETERS: list[JsonValue] = [
    TOPIC_PARAMETER,
    SUBSCRIPTION_PARAMETER,
    {
        "name": "after",
        "in": "query",
        "description": "The position after which to start. Without it: the beginning of the "
        "subscription. `Last-Event-ID` takes precedence.",
        "schema": {"type": "string"},
    },
    {"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"}},
    openapi.EJSON_IN_ADDRESS,
    openapi.EJSON_PARAMETER,
]
_LIVE: JsonObject = {
    "operationId": "topics_live",
    "tags": [TAG],
    "summary": "Follow a subscription by Server-Sent Events",
    "parameters": _PARAMETERS,
    "responses": {
        "200": {
            "description": "Frames of the WebSocket protocol as events, until the subscription "
            "ends.",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
}


def operations(streams: TopicStreams) -> tuple[HttpOperation[Call], ...]:
    """Return the calls of a process."""
    return (HttpOperation("GET", ROUTE, streams.live, _LIVE),)


add_to_openapi = openapi.adds_calls(("GET", ROUTE, _LIVE))
