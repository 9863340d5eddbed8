"""Follows write streams as a node does, through any failure of the server."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast
from uuid import UUID

import redis

from documents.outbox.entries import Image, Tick, decode
from documents.outbox.events import stream

_Raw = list[tuple[bytes, list[tuple[bytes, dict[bytes, bytes]]]]]


class Listener:
    """Remembers what was published. Ids of entries are times, so they increase across restarts."""

    def __init__(self, client: Callable[[], redis.Redis], partitions: int = 2) -> None:
        self._client = client
        self._positions = {stream(1, 1, number): "0-0" for number in range(partitions)}
        self._over = threading.Event()
        #: The newest version of each document, by collection and key.
        self.newest: dict[tuple[UUID, bytes], int] = {}
        #: The last tick of each stream.
        self.ticks: dict[str, Tick] = {}
        #: The tokens of the relays whose ticks each stream has, in the order of the ticks.
        self.tokens: dict[str, list[int]] = {name: [] for name in self._positions}

    def has(self, collection: UUID, key: bytes, version: int) -> bool:
        """Return whether this version, or a newer one, was published."""
        return self.newest.get((collection, key), 0) >= version

    @contextmanager
    def following(self) -> Iterator[None]:
        thread = threading.Thread(target=self._follow, name="listener")
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()

    def _follow(self) -> None:
        while not self._over.is_set():
            try:
                with self._client() as client:
                    while not self._over.is_set():
                        self._read(client)
            except redis.RedisError:
                self._over.wait(0.05)

    def _read(self, client: redis.Redis) -> None:
        positions = cast(
            "dict[bytes | str | memoryview, int | bytes | str | memoryview]", self._positions
        )
        for name, entries in cast("_Raw", client.xread(positions, block=100) or []):
            for entry_id, fields in entries:
                self._positions[name.decode()] = entry_id.decode()
                self._take(name.decode(), decode(fields[b"e"]))

    def _take(self, name: str, content: Image | Tick) -> None:
        if isinstance(content, Tick):
            self.ticks[name] = content
            self.tokens[name].append(content.token)
            return
        place = (content.collection_id, content.key)
        self.newest[place] = max(content.version, self.newest.get(place, 0))
