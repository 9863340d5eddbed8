"""Frames for subscribers to a topic, as JSON text."""

from __future__ import annotations

from data_plane.times import rfc3339
from foundation.api.rendering import to_json
from storage_engine.node.publication import Publication
from storage_engine.topics import places, positions, topic_json
from storage_engine.topics.facts import TopicFacts

#: Publications in one part of a result.
PART = 200


def event(
    name: str,
    topic: TopicFacts,
    publication: Publication,
    seq: int,
    resume: str,
    *,
    canonical: bool,
) -> bytes:
    """Return the frame of one publication. Its position precedes what publishers have written."""
    head = to_json(
        {
            "type": "event",
            "id": name,
            "seq": seq,
            "match": "add",
            "position": positions.token_of(topic.node_name, publication.position),
            "key": publication.name,
            "version": None,
            **_metadata(topic, publication),
        }
    )
    document = topic_json.data(publication, canonical=canonical)
    return head[:-1] + b',"document":' + document + b',"resume":' + to_json(resume) + b"}"


def item(topic: TopicFacts, publication: Publication, *, canonical: bool) -> bytes:
    """Return a publication of a result."""
    head = to_json(
        {
            "id": publication.name,
            "version": None,
            "position": positions.token_of(topic.node_name, publication.position),
            **_metadata(topic, publication),
        }
    )
    document = topic_json.data(publication, canonical=canonical)
    return head[:-1] + b',"document":' + document + b"}"


def _metadata(topic: TopicFacts, publication: Publication) -> dict[str, object]:
    return {
        "at": rfc3339(publication.at_ms),
        "expires_at": rfc3339(publication.until_ms),
        **places.shown(publication.place, topic.kind, id_member="topic_id"),
    }
