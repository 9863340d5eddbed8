"""Frames for subscribers to a topic, as JSON text."""

from __future__ import annotations

from collections.abc import Sequence

from data_plane.times import rfc3339
from foundation.api.rendering import to_json
from foundation.errors import ApiError
from storage_engine.node.publication import Publication
from storage_engine.topics import places, positions, topic_json
from storage_engine.topics.facts import TopicFacts

#: Publications in one part of a result.
PART = 200


def results(
    name: str,
    topic: TopicFacts,
    publications: Sequence[Publication],
    resume: str,
    *,
    canonical: bool,
) -> list[bytes]:
    """Return the frames of existing publications, the last one with the token."""
    parts = [publications[start : start + PART] for start in range(0, len(publications), PART)] or [
        publications
    ]
    frames = []
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        items = b",".join(_envelope(topic, each, canonical=canonical) for each in part)
        tail = {"part": number, "last": last, **({"resume": resume} if last else {})}
        frames.append(
            b'{"type":"result","id":%b,"items":[%b],%b' % (to_json(name), items, to_json(tail)[1:])
        )
    return frames


def ready(name: str, resume: str) -> bytes:
    return to_json({"type": "ready", "id": name, "resume": resume})


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
            **_circumstances(topic, publication),
        }
    )
    document = topic_json.data(publication, canonical=canonical)
    return head[:-1] + b',"document":' + document + b',"resume":' + to_json(resume) + b"}"


def reset(name: str, reason: str) -> bytes:
    return to_json({"type": "reset", "id": name, "reason": reason})


def status(name: str, state: str, reason: str) -> bytes:
    return to_json({"type": "status", "id": name, "state": state, "reason": reason})


def end(name: str, error: ApiError | None) -> bytes:
    problem = None if error is None else error.problem()
    return to_json({"type": "end", "id": name, "error": problem})


def _envelope(topic: TopicFacts, publication: Publication, *, canonical: bool) -> bytes:
    head = to_json(
        {
            "id": publication.name,
            "version": None,
            "position": positions.token_of(topic.node_name, publication.position),
            **_circumstances(topic, publication),
        }
    )
    document = topic_json.data(publication, canonical=canonical)
    return head[:-1] + b',"document":' + document + b"}"


def _circumstances(topic: TopicFacts, publication: Publication) -> dict[str, object]:
    return {
        "at": rfc3339(publication.at_ms),
        "expires_at": rfc3339(publication.until_ms),
        **places.shown(publication.place, topic.kind, id_member="topic_id"),
    }
