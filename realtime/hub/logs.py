"""Reads the notification logs of the grid, each over a separate connection.

A read blocks in Valkey until the next entry, so a notification arrives immediately.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from redis.exceptions import RedisError

from foundation.environment import environment
from foundation.valkey_wire import Reply, ValkeyWire

log = logging.getLogger(__name__)

WAIT_MS = 1_000
#: The maximum number of entries of one read, and about how many bytes it returns: more would take
#: the server more than a few milliseconds.
READ_AT_ONCE, READ_BYTES = 1_000, 2 * 1024 * 1024
CONNECT_TIMEOUT_S = 1.0
ANSWER_TIMEOUT_S = 5.0
RETRY_S = 0.25

#: A position in the log, and its entry.
LogEntry = tuple[str, bytes]


class LogReader:
    """Reads one log from a position on, until it is closed."""

    def __init__(self, stream: str, after: str, take: Callable[[list[LogEntry]], None]) -> None:
        self._stream = stream
        self._after = after
        self._take = take
        self._read_size = READ_AT_ONCE
        self._wire = ValkeyWire(
            environment().events,
            connect_timeout_s=CONNECT_TIMEOUT_S,
            answer_timeout_s=ANSWER_TIMEOUT_S,
        )
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._wire.aclose()

    async def _run(self) -> None:
        while True:
            try:
                await self._read()
            except RedisError as error:
                log.debug("the notification log cannot be read: %s", error)
                await asyncio.sleep(RETRY_S)

    async def _read(self) -> None:
        reply = await self._wire.call(
            "XREAD",
            "COUNT",
            self._read_size,
            "BLOCK",
            WAIT_MS,
            "STREAMS",
            self._stream,
            self._after,
        )
        batch = entries(reply)
        if batch:
            self._after = batch[-1][0]
            self._read_size = next_read_size(batch)
            self._take(batch)


def next_read_size(batch: Sequence[LogEntry]) -> int:
    """Return how many entries to read after these, by their size."""
    mean_bytes = sum(len(entry) for _, entry in batch) / len(batch)
    return max(1, min(READ_AT_ONCE, int(READ_BYTES / max(1.0, mean_bytes))))


def entries(reply: Reply) -> list[LogEntry]:
    """Return the entries that XREAD returned for its one stream."""
    if not isinstance(reply, list) or not reply or not isinstance(reply[0], list):
        return []
    return log_entries(reply[0][1])


def log_entries(rows: Reply) -> list[LogEntry]:
    """Return the entries of a range of a stream."""
    listed_entries = []
    for row in rows if isinstance(rows, list) else []:
        if not isinstance(row, list) or len(row) != 2:  # noqa: PLR2004 -- id and fields
            continue
        position, fields = row
        if (
            isinstance(position, bytes)
            and isinstance(fields, list)
            and isinstance(fields[1], bytes)
        ):
            listed_entries.append((position.decode(), fields[1]))
    return listed_entries
