"""POST /v1/realtime/tickets."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from connections import tickets
from connections.message_calls import object_of
from data_plane.calls import Call
from data_plane.http import CallResponse, json_answer
from data_plane.request_reader import (
    EJSON_PARAMETER,
    as_object,
    is_canonical,
    parameters,
    read_body,
)
from documents.api import requests
from documents.api.requests import usable
from foundation.errors import InvalidBody
from foundation.json_types import JsonObject
from realtime.registration import subscribe_request
from realtime.registration.subscribe_request import MEMBERS
from rillbase_native import Value
from storage_engine.topics import facts, positions
from storage_engine.topics.facts import READ
from storage_engine.topics.live import subscribe_request as topic_subscribe_request
from tenants.credentials.credential_reference import reference_of

MAX_ORIGIN_CHARS = 300
#: Members of a live query that can be part of its URL.
URL_MEMBERS = tuple(name for name in MEMBERS if name != "resume")
#: Members that name a subscription to a topic and where to start.
TOPIC_MEMBERS = ("topic", "subscription_id", "after")


async def issue(call: Call) -> CallResponse:
    """Create a ticket for the caller: for a WebSocket, or with `live` for one EventSource."""
    parameters(call)
    body = as_object(await read_body(call), ("origin", "live"))
    query = await _query(call, body.get("live"))
    ticket = tickets.Ticket(
        standing=reference_of(call.principal, call.head),
        claims=dict(call.principal.claims),
        origin=_origin(call, body.get("origin")),
        query=query,
    )
    text = await tickets.issue(ticket)
    members: JsonObject = {"ticket": text, "expires_in_s": ticket.lifetime_s}
    if query is not None:
        members["url"] = f"{path_of(query)}?{urlencode({'ticket': text})}"
    return json_answer(members, status=201, headers={"Cache-Control": "no-store"})


def _origin(call: Call, value: Value | None) -> str:
    """Return the origin whose pages may present the ticket: the caller's own, or one that a
    server names.
    """
    own = call.head.headers.get("Origin")
    if value is None or value.is_null:
        return own or ""
    if own is not None or value.kind != "string" or len(value.text()) > MAX_ORIGIN_CHARS:
        raise InvalidBody("`origin` is only for servers, which name the origin of the page.")
    return value.text()


def path_of(query: JsonObject) -> str:
    """Return the path of the stream with this query."""
    if "topic" in query:
        return f"/v1/topics/{query['topic']}/subscriptions/{query['subscription']}/live"
    return f"/v1/collections/{query['collection']}/live"


async def _query(call: Call, value: Value | None) -> JsonObject | None:
    """Return what a ticket is valid for, as the parameters of its URL."""
    if value is None or value.is_null:
        return None
    if value.kind == "object" and value.get("topic") is not None:
        members = as_object(value.ejson(canonical=True), (*TOPIC_MEMBERS, EJSON_PARAMETER))
        return {
            **await _subscription(call, _without_form(members, TOPIC_MEMBERS)),
            **_form(members),
        }
    members = as_object(value.ejson(canonical=True), (*URL_MEMBERS, EJSON_PARAMETER))
    request = subscribe_request.read(_without_form(members, URL_MEMBERS))
    usable(call, request.collection, requests.READ)
    return _form(members) | {
        name: member.text() if name == "collection" else member.ejson(canonical=True).decode()
        for name in URL_MEMBERS
        if (member := value.get(name)) is not None
    }


def _without_form(members: Value, known: Sequence[str]) -> Value:
    return as_object(object_of(members, known), known)


def _form(members: Value) -> JsonObject:
    """Return the form in which documents are sent, if the ticket specifies one."""
    form = members.get(EJSON_PARAMETER)
    if form is None or form.is_null:
        return {}
    text = form.text() if form.kind == "string" else ""
    is_canonical(text, EJSON_PARAMETER)
    return {EJSON_PARAMETER: text}


async def _subscription(call: Call, value: Value) -> JsonObject:
    """Return the followed subscription to a topic, and the position after which to start."""
    facts.allow(call.principal, READ)
    request = topic_subscribe_request.read(value)
    topic = await facts.find(call.tenant.id, request.topic)
    positions.read_name(request.existing or "", topic)
    query: JsonObject = {"topic": topic.name, "subscription": request.existing or ""}
    return query if request.after is None else {**query, "after": request.after}
