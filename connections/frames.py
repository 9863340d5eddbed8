"""Frames for clients, as JSON text. Frames of subscriptions are created by their products."""

from __future__ import annotations

import datetime

from foundation.api.rendering import to_json
from foundation.errors import ApiError

HEARTBEAT_S = 10.0


def welcome(connection: str) -> bytes:
    return to_json(
        {
            "type": "welcome",
            "connection": connection,
            "heartbeat_ms": int(HEARTBEAT_S * 1000),
        }
    )


def ack(message_id: str | None, body: bytes = b"") -> bytes:
    """Return a reply with the members of a REST response's body.

    A document's `_id` is its `key` here, as it is in events: `id` names the message.
    """
    head = b'{"type":"ack","id":' + to_json(message_id)
    members = body.strip()[1:-1]
    if members.startswith(b'"id":'):
        members = b'"key":' + members[5:]
    return head + (b"," + members if members else b"") + b"}"


def error(message_id: str | None, problem: ApiError, request_id: str) -> bytes:
    return to_json({"type": "error", "id": message_id, "error": problem.problem(request_id)})


def end(name: str, problem: ApiError | None, request_id: str) -> bytes:
    problem_body = None if problem is None else problem.problem(request_id)
    return to_json({"type": "end", "id": name, "error": problem_body})


def pong(message_id: str | None) -> bytes:
    return to_json({"type": "pong", "id": message_id})


def heartbeat() -> bytes:
    return to_json({"type": "heartbeat", "at": datetime.datetime.now(datetime.UTC)})


def goodbye(reconnect_in_ms: int) -> bytes:
    return to_json({"type": "goodbye", "reconnect_in_ms": reconnect_in_ms})
