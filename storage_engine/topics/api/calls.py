"""Every call but the live stream (`storage_engine.topics.live.api`)."""

from __future__ import annotations

import re

from data_plane import idempotency, times
from data_plane.calls import Call
from data_plane.http import CallResponse
from data_plane.request_reader import as_object, canonical, parameters, read_body
from foundation.api.cursors import open_sealed, seal
from foundation.api.idempotency import HEADER, REPLAYED_HEADER, check_form, digest
from foundation.api.rendering import to_json
from foundation.errors import (
    FieldProblem,
    InvalidBody,
    InvalidCursor,
    InvalidParameter,
    MalformedJson,
    NotFound,
)
from foundation.names import NAME_PATTERN
from foundation.resp_pipeline import Argument
from rillbase_native import JsonError, QueryError, Value
from storage_engine.models import DeliveredSubscription
from storage_engine.node import publication as replies
from storage_engine.node.client import client
from storage_engine.topics import (
    facts,
    places,
    positions,
    publish,
    subscribe,
    topic_json,
    webhook_delivery,
)
from storage_engine.topics.facts import READ, WRITE, TopicFacts

USUAL_LIMIT, MAX_LIMIT = 100, 1_000
_NAME = re.compile(rf"{NAME_PATTERN}\Z")
#: The node's names of publications that are named by an idempotency key.
_KEYED = "key-"
_KEY_CHARS = 40


async def topic_of(call: Call, scope: str) -> TopicFacts:
    """Return the topic that the path names, if the caller has the scope."""
    facts.allow(call.principal, scope)
    return await named(call, call.parameters["topic"])


async def named(call: Call, name: str) -> TopicFacts:
    if not _NAME.match(name):
        raise NotFound(f"The topic {name[:100]!r} does not exist.")
    return await facts.find(call.tenant.id, name)


async def publish_one(call: Call) -> CallResponse:
    """POST publications."""
    parameters(call)
    topic, form = await topic_of(call, WRITE), canonical(call)
    body = as_object(await read_body(call), publish.MEMBERS)
    done = await publish.publish(topic, publish.read(body, topic, key=_name_by_key(call)))
    response = to_json(
        {
            "publication_id": done.name,
            "position": positions.token_of(topic.node_name, done.position),
            "matched_subscribers": done.matched,
        }
    )
    if done.publications is not None:
        joined = topic_json.publications(topic, done.publications, canonical=form)
        response = response[:-1] + b',"publications":' + joined + b"}"
    if done.repeated:
        return CallResponse(200, response, {REPLAYED_HEADER: "true"})
    return CallResponse(201, response)


def _name_by_key(call: Call) -> str | None:
    """Return the publication id that corresponds to an idempotency key."""
    key = call.head.headers.get(HEADER)
    if key is None:
        return None
    check_form(key)
    hashed = digest(str(call.tenant.id), call.principal.actor, call.head.path, key)
    return _KEYED + hashed.hex()[:_KEY_CHARS]


async def subscribe_one(call: Call) -> CallResponse:
    """POST subscriptions."""
    parameters(call)
    topic, form = await topic_of(call, READ), canonical(call)
    text = await read_body(call)
    body = as_object(text, (*subscribe.MEMBERS, "webhook"))
    request = subscribe.read(body, topic)
    named_hook = publish.text(body, "webhook", 100)
    claim = idempotency.claim_of(call, text)
    if (repeated := await idempotency.recorded_response(claim)) is not None:
        return repeated
    webhook = (
        None
        if named_hook is None
        else await webhook_delivery.webhook_of(topic.tenant_id, named_hook)
    )
    grace_ms = 0 if webhook is None else subscribe.GRACE_MS
    done = await subscribe.subscribe(topic, request, grace_ms=grace_ms)
    self_joined = (
        None if webhook is None else webhook_delivery.recorder_of(topic, request, done, webhook)
    )
    answer = CallResponse(201, _subscription_body(topic, request, done, form=form))
    return await idempotency.settle(topic.tenant_id, claim, answer, self_joined)


def _subscription_body(
    topic: TopicFacts,
    request: subscribe.SubscribeRequest,
    done: subscribe.SubscribeResult,
    *,
    form: bool,
) -> bytes:
    head = to_json(
        {
            "subscription_id": done.name.public,
            "position": positions.token_of(topic.node_name, done.name.position),
            "from": times.rfc3339(request.from_ms),
            "to": times.rfc3339(request.until_ms),
        }
    )
    parts = [
        head[:-1],
        b'"publications":' + topic_json.publications(topic, done.publications, canonical=form),
    ]
    if done.subscriptions is not None:
        others = [
            topic_json.subscription(topic, subscription) for subscription in done.subscriptions
        ]
        parts.append(b'"subscriptions":' + to_json(others))
    return b",".join(parts) + b"}"


async def list_publications(call: Call) -> CallResponse:
    """GET publications."""
    query = parameters(call, "id", "geo", "from", "to", "limit", "cursor")
    topic, form = await topic_of(call, READ), canonical(call)
    now, limit = times.now_ms(), _limit(query.get("limit"))
    words = [*_place_words(query, topic), *_window(query, now)]
    after = _after(query.get("cursor"), topic)
    reply = await topic.call("RB.DATA", *words, "AFTER", after, "COUNT", limit + 1)
    publications = replies.publications(reply)
    page = publications[:limit]
    following = None
    if len(publications) > limit:
        following = cursor_behind(topic, positions.token_of(topic.node_name, page[-1].position))
    items = topic_json.publications(topic, page, canonical=form)
    return CallResponse(200, b'{"items":' + items + b',"next_cursor":' + to_json(following) + b"}")


def cursor_behind(topic: TopicFacts, position: str) -> str:
    """Return the cursor after a publication, whose position is given as its token."""
    return seal(position.encode(), _cursor_scope(topic))


def _cursor_scope(topic: TopicFacts) -> bytes:
    """Return what a cursor is valid for."""
    return b"topic:" + topic.tenant_id.bytes + topic.id.bytes


async def unsubscribe(call: Call) -> CallResponse:
    """DELETE subscriptions/{subscription}."""
    parameters(call)
    topic = await topic_of(call, READ)
    name = positions.read_name(call.parameters["subscription"], topic).node_name
    claim = idempotency.claim_of(call, b"")
    if (repeated := await idempotency.recorded_response(claim)) is not None:
        return repeated

    def forget() -> None:
        DeliveredSubscription.objects.filter(name=name).delete()

    was_subscribed = await client().call(topic.tenant_id, "RB.UNSUB", name) == 1
    response = await idempotency.settle(
        topic.tenant_id,
        claim if was_subscribed else None,
        CallResponse(204),
        forget,
    )
    if not was_subscribed:
        raise NotFound("The subscription does not exist or has ended.")
    return response


def _place_words(parameters: dict[str, str], topic: TopicFacts) -> list[Argument]:
    parts = []
    if "id" in parameters:
        parts.append(b'"id":' + to_json(parameters["id"]))
    if "geo" in parameters:
        parts.append(b'"geo":' + parameters["geo"].encode())
    try:
        value = Value.parse(b"{" + b",".join(parts) + b"}")
        return places.read(value, topic.kind)
    except (QueryError, JsonError, MalformedJson):
        problem = FieldProblem("geo", "invalid", "Expected JSON.")
        raise InvalidParameter(errors=[problem]) from None
    except InvalidBody as error:
        raise _as_parameter(error) from None


def _window(parameters: dict[str, str], now: int) -> list[Argument]:
    words: list[Argument] = []
    for name, word in (("from", "FROM"), ("to", "UNTIL")):
        if name in parameters:
            try:
                words += [word, times.parse(parameters[name], name, now)]
            except InvalidBody as error:
                raise _as_parameter(error) from None
    return words


def _as_parameter(wrong: InvalidBody) -> InvalidParameter:
    return InvalidParameter(
        wrong.detail,
        errors=[FieldProblem(e.pointer.lstrip("/"), e.code, e.detail) for e in wrong.errors],
    )


def _limit(text: str | None) -> int:
    if text is None:
        return USUAL_LIMIT
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= MAX_LIMIT):  # noqa: PLR2004 -- digits that int() takes at once
        detail = f"Expected an integer from 1 to {MAX_LIMIT}."
        raise InvalidParameter(errors=[FieldProblem("limit", "invalid", detail)])
    return int(text)


def _after(cursor: str | None, topic: TopicFacts) -> int:
    if cursor is None:
        return 0
    try:
        token = open_sealed(cursor, _cursor_scope(topic)).decode()
        return positions.position_of(topic.node_name, token)
    except ValueError:
        raise InvalidCursor from None
