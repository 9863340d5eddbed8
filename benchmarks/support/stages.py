"""The times at which writes passed each stage, read afterwards without disturbing the run.

Entries of the event layer's streams have the time of their append, in milliseconds, as id, and
contain the documents. So the streams' contents at the end of a run (ten seconds of after-images, a
minute of notifications) give the times of each write.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterator
from typing import cast

import redis

_DOUBLE = 8


def entered(url: str, field: str) -> tuple[dict[float, float], dict[float, float]]:
    """Return when each write entered a write stream, and when a node reported it.

    Writes are identified by the number in one of their fields; times are those of the monotonic
    clock.
    """
    ahead_s = time.time() - time.monotonic()
    marker = b"\x01" + field.encode() + b"\0"
    streams: dict[float, float] = {}
    logs: dict[float, float] = {}
    with redis.Redis.from_url(url) as client:
        for key in client.scan_iter(match="{rillbase}:events:*", _type="stream"):
            *_, kind, number = key.split(b":")
            if not number.isdigit() or not (kind.isdigit() or kind == b"log"):
                continue
            times = logs if kind == b"log" else streams
            for at_ms, value in _values(client, key, marker):
                times.setdefault(value, at_ms / 1000 - ahead_s)
    return streams, logs


def _values(client: redis.Redis, stream: bytes, marker: bytes) -> Iterator[tuple[int, float]]:
    """Yield each value of the field, and when its entry was appended."""
    entries = cast("list[tuple[bytes, dict[bytes, bytes]]]", client.xrange(stream))
    for name, fields in entries:
        at_ms = int(name.partition(b"-")[0])
        for content in fields.values():
            place = content.find(marker)
            while place >= 0:
                start = place + len(marker)
                if len(content) < start + _DOUBLE:
                    break
                yield at_ms, struct.unpack_from("<d", content, start)[0]
                place = content.find(marker, start)
