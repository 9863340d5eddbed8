"""Frames for clients, as JSON text. Products create the frames of their events."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import TypeVar

from foundation.api.rendering import to_json
from foundation.errors import ApiError

HEARTBEAT_S = 10.0

T = TypeVar("T")


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


def results(
    name: str, rows: Sequence[T], encode: Callable[[T], bytes], part_size: int, resume: str
) -> list[bytes]:
    """Return the frames of a result in parts of so many rows, the last one with the token."""
    parts = [rows[start : start + part_size] for start in range(0, len(rows), part_size)] or [rows]
    frames = []
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        items = b",".join(encode(row) for row in part)
        tail = {"part": number, "last": last, **({"resume": resume} if last else {})}
        frames.append(
            b'{"type":"result","id":%b,"items":[%b],%b' % (to_json(name), items, to_json(tail)[1:])
        )
    return frames


def ready(name: str, resume: str) -> bytes:
    return to_json({"type": "ready", "id": name, "resume": resume})


def reset(name: str, reason: str) -> bytes:
    return to_json({"type": "reset", "id": name, "reason": reason})


def status(name: str, state: str, reason: str) -> bytes:
    return to_json({"type": "status", "id": name, "state": state, "reason": reason})


def end(name: str, problem: ApiError | None, request_id: str | None = None) -> bytes:
    problem_body = None if problem is None else problem.problem(request_id)
    return to_json({"type": "end", "id": name, "error": problem_body})


def pong(message_id: str | None) -> bytes:
    return to_json({"type": "pong", "id": message_id})


def heartbeat() -> bytes:
    return to_json({"type": "heartbeat", "at": datetime.datetime.now(datetime.UTC)})


def goodbye(reconnect_in_ms: int) -> bytes:
    return to_json({"type": "goodbye", "reconnect_in_ms": reconnect_in_ms})
