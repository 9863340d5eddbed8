"""Topics, publications and subscriptions in responses."""

from __future__ import annotations

import json
from collections.abc import Iterable

from data_plane.times import rfc3339
from foundation.api.rendering import timestamp, to_json
from foundation.json_types import JsonObject
from rillbase_native import Value
from storage_engine.models import Topic
from storage_engine.node.publication import Publication, TopicSubscriber
from storage_engine.topics import places, positions
from storage_engine.topics.facts import TopicFacts
from storage_engine.topics.positions import SubscriptionName


def publication(topic: TopicFacts, item: Publication, *, canonical: bool) -> bytes:
    """Return a publication as JSON."""
    head = to_json(
        {
            "publication_id": item.name,
            "position": positions.token_of(topic.node_name, item.position),
            "at": rfc3339(item.at_ms),
            "expires_at": rfc3339(item.until_ms),
            **places.shown(item.place, topic.kind),
        }
    )
    return head[:-1] + b',"data":' + data(item, canonical=canonical) + b"}"


def data(item: Publication, *, canonical: bool) -> bytes:
    """Return a publication's data as Extended JSON."""
    if item.data is None:
        return b"null"
    return Value.from_bson(item.data).ejson(canonical=canonical)


def publications(topic: TopicFacts, items: Iterable[Publication], *, canonical: bool) -> bytes:
    """Return a list of publications as JSON."""
    return b"[" + b",".join(publication(topic, p, canonical=canonical) for p in items) + b"]"


def subscription(topic: TopicFacts, item: TopicSubscriber) -> JsonObject:
    """Return a subscription as others may see it."""
    query_filter = None if item.filter is None else json.loads(Value.from_bson(item.filter).ejson())
    return {
        "subscription_id": SubscriptionName(item.id, item.position).public,
        "subscriber": item.name or None,
        "from": rfc3339(item.from_ms),
        "to": rfc3339(item.until_ms),
        "filter": query_filter,
        "unseen_only": item.unseen_only,
        **places.shown(item.place, topic.kind),
    }


def describe(topic: Topic) -> JsonObject:
    """Return a topic."""
    return {
        "id": str(topic.id),
        "name": topic.name,
        "kind": topic.kind,
        "grid": topic.grid,
        "retention_s": topic.retention_s,
        "max_data_bytes": topic.max_data_bytes,
        "version": topic.version,
        "created_at": timestamp(topic.created_at),
        "updated_at": timestamp(topic.updated_at),
    }
