"""Publications and subscriptions as in responses."""

from __future__ import annotations

import json
from collections.abc import Iterable

from data_plane.times import rfc3339
from foundation.api.rendering import to_json
from foundation.json_types import JsonObject
from rillbase_native import Value
from storage_engine.node.publication import Publication, TopicSubscriber
from storage_engine.topics import places, positions
from storage_engine.topics.facts import TopicFacts
from storage_engine.topics.names import SubscriptionName


def publication(topic: TopicFacts, found: Publication, *, canonical: bool) -> bytes:
    """Return a publication as JSON."""
    head = to_json(
        {
            "publication_id": found.name,
            "position": positions.token_of(topic.node_name, found.position),
            "at": rfc3339(found.at_ms),
            "expires_at": rfc3339(found.until_ms),
            **places.shown(found.place, topic.kind),
        }
    )
    return head[:-1] + b',"data":' + data(found, canonical=canonical) + b"}"


def data(found: Publication, *, canonical: bool) -> bytes:
    """Return a publication's data as Extended JSON."""
    if found.data is None:
        return b"null"
    return Value.from_bson(found.data).ejson(canonical=canonical)


def publications(topic: TopicFacts, found: Iterable[Publication], *, canonical: bool) -> bytes:
    """Return a list of publications as JSON."""
    return b"[" + b",".join(publication(topic, p, canonical=canonical) for p in found) + b"]"


def subscription(topic: TopicFacts, found: TopicSubscriber) -> JsonObject:
    """Return a subscription as others may see it."""
    wanted = None if found.filter is None else json.loads(Value.from_bson(found.filter).ejson())
    return {
        "subscription_id": SubscriptionName(found.id, found.position).public,
        "subscriber": found.name or None,
        "from": rfc3339(found.from_ms),
        "to": rfc3339(found.until_ms),
        "filter": wanted,
        "unseen_only": found.unseen_only,
        **places.shown(found.place, topic.kind),
    }
