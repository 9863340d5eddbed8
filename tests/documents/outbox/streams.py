"""Reads write streams as a node of the grid does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import redis

from documents.outbox.entries import Image, Tick, decode
from documents.outbox.events import stream

_Raw = tuple[bytes, dict[bytes, bytes]]


@dataclass(frozen=True)
class Entry:
    id: bytes
    content: Image | Tick
    #: The write partitions of the atomic batch that it belongs to.
    partitions: tuple[int, ...]
    #: The number of entries ever appended to the stream, including this one, if it is given.
    number: int | None


class Streams:
    """The streams of one installation and grid epoch."""

    def __init__(
        self, client: redis.Redis, installation: int = 1, epoch: int = 1, partitions: int = 2
    ) -> None:
        self._client = client
        self.names = [stream(installation, epoch, number) for number in range(partitions)]

    def read(self, partition: int) -> list[Entry]:
        return _entries(self._client.xrange(self.names[partition]))

    def read_numbered(self, partition: int) -> list[tuple[int, Entry]]:
        """Return the entries with their numbers: the first ones may have been trimmed."""
        with self._client.pipeline(transaction=True) as pipe:
            pipe.xinfo_stream(self.names[partition])
            pipe.xrange(self.names[partition])
            info, raw = pipe.execute()
        return list(enumerate(_entries(raw), start=info["entries-added"] - info["length"] + 1))

    def images(self) -> list[Image]:
        """Return the after-images of all streams."""
        contents = [
            entry.content for number in range(len(self.names)) for entry in self.read(number)
        ]
        return [content for content in contents if isinstance(content, Image)]

    def ticks(self, partition: int = 0) -> list[Tick]:
        contents = [entry.content for entry in self.read(partition)]
        return [content for content in contents if isinstance(content, Tick)]


def _entries(raw: object) -> list[Entry]:
    return [
        Entry(
            entry_id,
            decode(fields[b"e"]),
            _unpacked(fields.get(b"p", b"")),
            int(fields[b"n"]) if b"n" in fields else None,
        )
        for entry_id, fields in cast("list[_Raw]", raw)
    ]


def _unpacked(packed: bytes) -> tuple[int, ...]:
    return tuple(int.from_bytes(packed[at : at + 2], "big") for at in range(0, len(packed), 2))
