"""The frames sent to subscribers of an aggregate, as JSON text."""

from __future__ import annotations

from collections.abc import Sequence

from aggregates.live.rows import RowDifference
from foundation.api.rendering import to_json
from foundation.errors import ApiError

#: Rows in one part of a result.
PART = 1_000


def results(name: str, rows: Sequence[tuple[bytes, bytes]], resume: str) -> list[bytes]:
    """Return the frames of an answer, the last with the token."""
    parts = [rows[start : start + PART] for start in range(0, len(rows), PART)] or [rows]
    frames = []
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        items = b",".join(b'{"id":%b,"version":null,"document":%b}' % pair for pair in part)
        tail = {"part": number, "last": last, **({"resume": resume} if last else {})}
        frames.append(
            b'{"type":"result","id":%b,"items":[%b],%b' % (to_json(name), items, to_json(tail)[1:])
        )
    return frames


def event(name: str, difference: RowDifference, seq: int, txn: dict[str, object] | None) -> bytes:
    """Return the frame of one row, without a token."""
    head = to_json({"type": "event", "id": name, "seq": seq, "match": difference.match})
    frame = b'%b,"key":%b,"version":null' % (head[:-1], difference.key)
    if difference.row is None:
        frame += b',"reason":"left"'
    else:
        frame += b',"document":' + difference.row
    if txn is not None:
        frame += b',"txn":' + to_json(txn)
    return frame + b"}"


def with_token(frame: bytes, resume: str) -> bytes:
    """Return a frame with the resume token for what the client then holds."""
    return frame[:-1] + b',"resume":' + to_json(resume) + b"}"


def ready(name: str, resume: str) -> bytes:
    return to_json({"type": "ready", "id": name, "resume": resume})


def reset(name: str, reason: str) -> bytes:
    return to_json({"type": "reset", "id": name, "reason": reason})


def status(name: str, state: str, reason: str) -> bytes:
    return to_json({"type": "status", "id": name, "state": state, "reason": reason})


def end(name: str, error: ApiError | None) -> bytes:
    problem = None if error is None else error.problem()
    return to_json({"type": "end", "id": name, "error": problem})
