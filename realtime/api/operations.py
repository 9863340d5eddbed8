"""Every call of the data plane's real-time side, with its place in the OpenAPI document."""

from __future__ import annotations

from data_plane.calls import Call
from data_plane.http import HttpOperation
from data_plane.http.openapi import EJSON_IN_ADDRESS, EJSON_PARAMETER, adds_calls
from documents.api.operations import COLLECTION_PARAMETER, FILTER, GROUP, LOOKUP, SORT
from foundation.json_types import JsonObject, JsonValue
from realtime.api import tickets
from realtime.api.live import ROUTE, LiveQueries

TICKETS = "/v1/realtime/tickets"

_TAG = "Real time"
_TICKET: JsonObject = {
    "type": "object",
    "required": ["ticket", "expires_in_s"],
    "properties": {
        "ticket": {"type": "string"},
        "expires_in_s": {"type": "integer"},
        "url": {"type": "string", "description": "For an EventSource; only with `live`."},
    },
}
_WANTED: JsonObject = {
    "type": "object",
    "additionalProperties": False,
    "required": ["collection"],
    "properties": {
        "collection": {"type": "string", "example": "todos"},
        "filter": FILTER,
        "sort": SORT,
        "projection": {"type": "object"},
        "group": GROUP,
        "lookup": LOOKUP,
        "offset": {"type": "integer", "minimum": 0},
        "limit": {"type": "integer", "minimum": 1, "maximum": 10_000},
        "options": {"type": "object"},
        "ejson": EJSON_PARAMETER["schema"],
    },
}
_FOLLOWED: JsonObject = {
    "type": "object",
    "additionalProperties": False,
    "required": ["topic", "subscription_id"],
    "properties": {
        "topic": {"type": "string", "example": "traffic"},
        "subscription_id": {"type": "string"},
        "after": {"type": "integer", "minimum": 0},
        "ejson": EJSON_PARAMETER["schema"],
    },
}
_ISSUE: JsonObject = {
    "operationId": "realtime_tickets_create",
    "tags": [_TAG],
    "summary": "Create a ticket for a browser's connection",
    "requestBody": {
        "required": False,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "additionalProperties": False,
                    "properties": {
                        "origin": {"type": "string", "example": "https://app.example"},
                        "live": {"oneOf": [_WANTED, _FOLLOWED]},
                    },
                }
            }
        },
    },
    "responses": {
        "201": {"description": "Done", "content": {"application/json": {"schema": _TICKET}}}
    },
}


def _parameter(name: str, description: str) -> JsonObject:
    return {"name": name, "in": "query", "description": description, "schema": {"type": "string"}}


_LIVE_PARAMETERS: list[JsonValue] = [
    COLLECTION_PARAMETER,
    _parameter("filter", "As in `POST query`, encoded as JSON."),
    _parameter("sort", "As in `POST query`, encoded as JSON."),
    _parameter("projection", "As in `POST query`, encoded as JSON."),
    _parameter("group", "As in `POST query`, encoded as JSON."),
    _parameter("lookup", "As in `POST query`, encoded as JSON."),
    {"name": "offset", "in": "query", "schema": {"type": "integer", "minimum": 0}},
    {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1}},
    _parameter("options", "`deliver`, `throttle_ms` and `events`, as a JSON object."),
    _parameter("resume", "A resume token. `Last-Event-ID` takes precedence."),
    {"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"}},
    EJSON_IN_ADDRESS,
    EJSON_PARAMETER,
]
_EVENT: JsonObject = {
    "type": "object",
    "properties": {
        "event": {"type": "string", "description": "The type of the frame."},
        "id": {"type": "string", "description": "The resume token."},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
}
_LIVE: JsonObject = {
    "operationId": "documents_live",
    "tags": [_TAG],
    "summary": "Subscribe to a query by Server-Sent Events",
    "parameters": _LIVE_PARAMETERS,
    "responses": {
        "200": {
            "description": "Frames of the WebSocket protocol as events; the stream does not end.",
            "content": {"text/event-stream": {"schema": _EVENT}},
        }
    },
}


def operations(live: LiveQueries) -> tuple[HttpOperation[Call], ...]:
    """Return the calls of a process."""
    return (
        HttpOperation("POST", TICKETS, tickets.issue, _ISSUE),
        HttpOperation("GET", ROUTE, live.by_headers, _LIVE),
    )


add_to_openapi = adds_calls(("POST", TICKETS, _ISSUE), ("GET", ROUTE, _LIVE))
