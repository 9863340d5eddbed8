"""Inserts documents at a steady rate, despite failures of the server.

They are sent over one connection, without waiting for the response to the previous one. An insert
without a response is retried over the next connection: a unique `_id` makes that safe.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import time
from collections.abc import Callable

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import WebSocketException

from benchmarks.support.client import insert, opened

RETRY_S = 0.1
ANSWER_TIMEOUT_S = 5.0
#: With so many outstanding responses, no more inserts are sent.
UNANSWERED = 1_000
_EXISTS = 409


class Inserts:
    """Writes into random shards, and reports each document once it exists."""

    def __init__(
        self, port: int, key: str, collection: str, shards: int, note: Callable[[int, str], None]
    ) -> None:
        self._port = port
        self._key = key
        self._collection = collection
        self._shards = shards
        self._note = note
        self._rng = random.Random(11)
        self._begun_s = 0.0
        self._sent = 0
        #: The shards of documents without a response yet.
        self._unanswered: dict[str, int] = {}

    async def run(self, writes_per_s: float) -> None:
        """Write continuously."""
        self._begun_s = time.monotonic()
        while True:
            with contextlib.suppress(OSError, WebSocketException, TimeoutError):
                connection = await opened(self._port, self._key)
                sending = asyncio.create_task(self._send(connection, writes_per_s))
                try:
                    await self._listen(connection)
                finally:
                    sending.cancel()
                    await asyncio.gather(sending, return_exceptions=True)
                    await connection.close()
            await asyncio.sleep(RETRY_S)

    async def _send(self, connection: ClientConnection, writes_per_s: float) -> None:
        for key, shard in list(self._unanswered.items()):
            await self._insert(connection, key, shard)
        while True:
            due_s = self._begun_s + self._sent / writes_per_s
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
            while len(self._unanswered) >= UNANSWERED:  # noqa: ASYNC110 -- a look now and then is cheap
                await asyncio.sleep(0.01)
            shard = self._rng.randrange(self._shards)
            key = f"w{self._sent}-{shard}"
            self._sent += 1
            self._unanswered[key] = shard
            await self._insert(connection, key, shard)

    async def _insert(self, connection: ClientConnection, key: str, shard: int) -> None:
        document = {"_id": key, "shard": shard}
        await connection.send(insert(key, self._collection, document))

    async def _listen(self, connection: ClientConnection) -> None:
        while True:
            frame = json.loads(await asyncio.wait_for(connection.recv(), ANSWER_TIMEOUT_S))
            if frame["type"] == "error" and frame["error"]["status"] != _EXISTS:
                raise TimeoutError(f"a write was rejected: {frame}")
            key = frame.get("id")
            if frame["type"] in ("ack", "error") and key in self._unanswered:
                self._note(self._unanswered.pop(key), key)
