"""The frames sent to subscribers of an aggregate, as JSON text."""

from __future__ import annotations

from aggregates.live.rows import RowDifference
from foundation.api.rendering import to_json

#: Rows in one part of a result.
PART = 1_000


def item(row: tuple[bytes, bytes]) -> bytes:
    """Return a row of a result."""
    return b'{"id":%b,"version":null,"document":%b}' % row


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
