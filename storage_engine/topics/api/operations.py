"""Every call of the data plane of topics, with its place in the OpenAPI document."""

from __future__ import annotations

from data_plane.calls import Call
from data_plane.http import HttpOperation
from data_plane.http.openapi import adds, answers, described, members, name_parameter, parameter
from foundation.json_types import JsonObject
from storage_engine.topics.api import calls

ROOT = "/v1/topics/{topic}"
TAG = "Topics"

TOPIC_PARAMETER = name_parameter("topic", "traffic")
SUBSCRIPTION_PARAMETER: JsonObject = {
    "name": "subscription",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "minLength": 1},
}
MOMENT: JsonObject = {
    "description": "RFC 3339, milliseconds since 1970, or relative to the current time.",
    "type": ["string", "integer"],
    "example": "-10s",
}
ID: JsonObject = {"type": "string", "maxLength": 1000, "example": "1.4.2"}
GEO: JsonObject = {
    "type": "object",
    "description": "A circle (`center` with `radius_m`, or `radius` on a plane) or a `box` (west, "
    "south, east, north).",
    "example": {"center": [16.37, 48.21], "radius_m": 500},
}
_ANSWERED: JsonObject = {"type": "string", "format": "date-time"}
POSITION: JsonObject = {
    "type": "string",
    "description": "Position of the publication, as an opaque token. Equal for the same "
    "publication; tokens cannot be ordered.",
}
_PUBLICATION: JsonObject = {
    "type": "object",
    "required": ["publication_id", "position", "at", "expires_at", "data"],
    "properties": {
        "publication_id": {"type": "string"},
        "position": POSITION,
        "at": _ANSWERED,
        "expires_at": _ANSWERED,
        "id": ID,
        "geo": GEO,
        "data": {"type": ["object", "null"]},
    },
}
_PUBLICATIONS: JsonObject = {"type": "array", "items": _PUBLICATION}
_SUBSCRIPTION: JsonObject = {
    "type": "object",
    "properties": {
        "subscription_id": {"type": "string"},
        "subscriber": {"type": ["string", "null"]},
        "from": _ANSWERED,
        "to": _ANSWERED,
        "filter": {"type": ["object", "null"]},
        "unseen_only": {"type": "boolean"},
        "id": ID,
        "geo": GEO,
    },
}


_PUBLISH = members(
    {
        "id": ID,
        "geo": GEO,
        "data": {"type": ["object", "null"], "example": {"kind": "accident", "lanes": 2}},
        "publication_id": {
            "type": "string",
            "maxLength": 200,
            "description": "Retries with the same id within a day publish once.",
        },
        "at": MOMENT,
        "expires_in_s": {"type": "number", "exclusiveMinimum": 0},
        "expires_at": MOMENT,
        "self_join": {
            "type": "boolean",
            "default": False,
            "description": "Also return what else is published at this place.",
        },
    },
    closed=True,
)
_PUBLISHED = members(
    {
        "publication_id": {"type": "string"},
        "position": POSITION,
        "matched_subscribers": {"type": "integer"},
        "publications": _PUBLICATIONS,
    },
    "publication_id",
    "position",
    "matched_subscribers",
)
_SUBSCRIBE = members(
    {
        "id": ID,
        "geo": GEO,
        "from": {**MOMENT, "default": "+0s"},
        "to": {**MOMENT, "default": "+1h", "example": "+10s"},
        "subscriber": {"type": "string", "maxLength": 200},
        "filter": {"type": "object", "description": "A filter on a publication's data."},
        "unseen_only": {
            "type": "boolean",
            "default": False,
            "description": "Skip publications that another subscription of this `subscriber` has "
            "received.",
        },
        "webhook": {
            "type": "string",
            "format": "uuid",
            "description": "A webhook of the tenant that receives the matching publications.",
        },
        "self_join": {
            "type": "boolean",
            "default": False,
            "description": "Also return who else is subscribed at this place.",
        },
    },
    closed=True,
)
_SUBSCRIBED = members(
    {
        "subscription_id": {"type": "string"},
        "position": POSITION,
        "from": _ANSWERED,
        "to": _ANSWERED,
        "publications": _PUBLICATIONS,
        "subscriptions": {"type": "array", "items": _SUBSCRIPTION},
    },
    "subscription_id",
    "position",
    "publications",
)
_PAGE = members(
    {"items": _PUBLICATIONS, "next_cursor": {"type": ["string", "null"]}}, "items", "next_cursor"
)


def _describe(
    name: str,
    summary: str,
    responses: JsonObject,
    *,
    body: JsonObject | None = None,
    parameters: tuple[JsonObject, ...] = (),
) -> JsonObject:
    return described(
        name,
        TAG,
        summary,
        responses,
        body=None if body is None else {"application/json": body},
        parameters=(TOPIC_PARAMETER, *parameters),
    )


_LIST = (
    parameter("id", "query", {"type": "string"}),
    parameter(
        "geo",
        "query",
        {"type": "string"},
        description="As in `POST publications`, encoded as JSON.",
    ),
    parameter("from", "query", {"type": "string"}),
    parameter("to", "query", {"type": "string"}),
    parameter("limit", "query", {"type": "integer", "minimum": 1, "maximum": 1000}),
    parameter("cursor", "query", {"type": "string"}),
)

OPERATIONS: tuple[HttpOperation[Call], ...] = (
    HttpOperation(
        "POST",
        f"{ROOT}/publications",
        calls.publish_one,
        _describe(
            "topics_publish",
            "Publish",
            {**answers("201", _PUBLISHED), **answers("200", _PUBLISHED)},
            body=_PUBLISH,
        ),
    ),
    HttpOperation(
        "GET",
        f"{ROOT}/publications",
        calls.list_publications,
        _describe("topics_look", "List publications", answers("200", _PAGE), parameters=_LIST),
    ),
    HttpOperation(
        "POST",
        f"{ROOT}/subscriptions",
        calls.subscribe_one,
        _describe("topics_subscribe", "Subscribe", answers("201", _SUBSCRIBED), body=_SUBSCRIBE),
    ),
    HttpOperation(
        "DELETE",
        f"{ROOT}/subscriptions/{{subscription}}",
        calls.unsubscribe,
        _describe(
            "topics_unsubscribe",
            "End a subscription",
            answers("204", None),
            parameters=(SUBSCRIPTION_PARAMETER,),
        ),
    ),
)


add_to_openapi = adds(OPERATIONS)
