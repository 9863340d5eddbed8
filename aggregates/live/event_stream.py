"""GET /v1/aggregates/{aggregate}/live: an aggregate's rows as Server-Sent Events.

Aggregates and the real-time connections are independent of each other; they meet here.
"""

from __future__ import annotations

from aggregates.api.operations import AGGREGATE_PARAMETER, QUERY_PROPERTIES, TAG
from aggregates.api.queries import LIVE_MEMBERS
from aggregates.live.kind import AggregateSubscriptionKind
from connections.callers import ConnectionCaller
from connections.connection_registry import ConnectionRegistry
from connections.event_stream_consumer import EventStreams
from data_plane.calls import Call
from data_plane.http import CallResponse, HttpOperation, openapi
from data_plane.request_reader import parameters
from foundation.api.rendering import to_json
from foundation.errors import FieldProblem, InvalidParameter
from foundation.json_types import JsonObject, JsonValue
from rillbase_native import JsonError, QueryError, Value
from tenants.credentials.credential_reference import reference_of

ROUTE = "/v1/aggregates/{aggregate}/live"
LAST_EVENT_ID = "Last-Event-ID"
#: Members of a query that are JSON in an address; the others are text.
_JSON = frozenset({"rollup", "filter", "group_by", "order", "limit", "measures"})


class AggregateStreams:
    """Sends rows, followed by their changes."""

    def __init__(self, kind: AggregateSubscriptionKind, registry: ConnectionRegistry) -> None:
        self._kind = kind
        self._streams = EventStreams(registry)

    async def live(self, call: Call) -> CallResponse:
        """Respond to an authorized caller."""
        message = _message(call, parameters(call, *LIVE_MEMBERS, "resume"))
        caller = ConnectionCaller(
            call.principal, call.tenant, reference_of(call.principal, call.head)
        )
        return self._streams.answer(call, caller, self._kind, message)


def _message(call: Call, parameters: dict[str, str]) -> Value:
    """Return the `subscribe` message that corresponds to a URL."""
    parts = [b'"aggregate":' + to_json(call.parameters["aggregate"])]
    resume = call.head.headers.get(LAST_EVENT_ID) or parameters.pop("resume", None)
    parameters.pop("resume", None)
    if resume:
        parts.append(b'"resume":' + to_json(resume))
    for name, text in parameters.items():
        parts.append(to_json(name) + b":" + (_json(name, text) if name in _JSON else to_json(text)))
    return Value.parse_request(b"{" + b",".join(parts) + b"}")


def _json(name: str, text: str) -> bytes:
    try:
        return Value.parse(text.encode()).ejson(canonical=True)
    except (JsonError, QueryError):
        problem = FieldProblem(name, "invalid", "Expected JSON.")
        raise InvalidParameter(errors=[problem]) from None


def _parameter(name: str) -> JsonObject:
    described = QUERY_PROPERTIES[name]
    schema: JsonValue = {"type": "string"}
    parameter: JsonObject = {"name": name, "in": "query", "schema": schema}
    if name in _JSON:
        parameter["description"] = "As in a query's body, encoded as JSON."
    elif isinstance(described, dict) and "description" in described:
        parameter["description"] = described["description"]
    return parameter


_PARAMETERS: list[JsonValue] = [
    AGGREGATE_PARAMETER,
    *(_parameter(name) for name in LIVE_MEMBERS),
    {"name": "resume", "in": "query", "schema": {"type": "string"}},
    {"name": LAST_EVENT_ID, "in": "header", "schema": {"type": "string"}},
]
_LIVE: JsonObject = {
    "operationId": "aggregates_live",
    "tags": [TAG],
    "summary": "Subscribe to rows by Server-Sent Events",
    "parameters": _PARAMETERS,
    "responses": {
        "200": {
            "description": "Frames of the WebSocket protocol as events",
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    },
}


def operations(streams: AggregateStreams) -> tuple[HttpOperation[Call], ...]:
    """Return the calls of a process."""
    return (HttpOperation("GET", ROUTE, streams.live, _LIVE),)


add_to_openapi = openapi.adds_calls(("GET", ROUTE, _LIVE))
