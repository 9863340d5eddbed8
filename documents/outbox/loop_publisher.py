"""The publisher of one event loop.

Transactions wait in a bounded queue. What has accumulated during a call is sent in the next one, so
a busy process makes few large calls and an idle one publishes at once. A transaction is marked when
all of its parts have been appended; if any was not, the relay appends them all.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import psycopg
from redis.exceptions import RedisError

from documents.outbox.database import relay_pool
from documents.outbox.events import AppendVerdict, EntryGroup, EventLayer, PackedGroup
from documents.outbox.installation import INSTALLATION
from documents.outbox.marks import Marker
from foundation.environment import environment
from foundation.metrics import PUBLISH_DURATION, PUBLISHED
from foundation.remote_clock import RemoteClock
from foundation.valkey_functions import MAX_CALL_BYTES
from foundation.valkey_wire import ValkeyWire

logger = logging.getLogger(__name__)
#: Looked up once: it counts every transaction.
_PUBLISHED = PUBLISHED.labels("published")

#: More than the largest request, so that one transaction always finds room.
MAX_QUEUED_BYTES = 64 * 1024 * 1024
MAX_CALLS = 4
CONNECT_TIMEOUT_S = 1.0
#: After this time, the stamps of queued calls are too old anyway.
ANSWER_TIMEOUT_S = 5.0
#: How often an unavailable server is retried, and how often the clock follows an idle one.
RETRY_S = 0.25
REFRESH_S = 10.0


class PublishableTransaction(Protocol):
    """The writes of a transaction, packed once it is known that they can be published."""

    @property
    def xid(self) -> int: ...

    def groups(self) -> Sequence[EntryGroup | PackedGroup]:
        """Return the groups that are appended at once."""


@dataclass(slots=True)
class _Call:
    """A part of a transaction that is appended in one call."""

    xid: int
    group: EntryGroup | PackedGroup
    stamp_us: int
    committed_s: float
    #: Shared by the calls of one transaction: how many of them have not been appended.
    missing: list[int]

    @property
    def size_bytes(self) -> int:
        return self.group.size_bytes


class LoopPublisher:
    """Publishes while the event layer can be reached, and drops otherwise."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._wire = ValkeyWire(
            environment().events,
            connect_timeout_s=CONNECT_TIMEOUT_S,
            answer_timeout_s=ANSWER_TIMEOUT_S,
        )
        self._clock = RemoteClock(time.monotonic)
        self._marker = Marker()
        self._events: EventLayer | None = None
        self._queue: deque[_Call] = deque()
        self._queued_bytes = 0
        #: Whether a call has been created that will take what is queued when it starts.
        self._is_starting = False
        self._calls: set[asyncio.Task[None]] = set()
        self._connection_lost = asyncio.Event()
        self._connection_task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Connect to the event layer, now and whenever it is lost."""
        self._connection_task = self._loop.create_task(
            self._maintain_connection(), name="publisher"
        )

    @property
    def queued_bytes(self) -> int:
        """How many bytes are queued."""
        return self._queued_bytes

    async def close(self) -> None:
        """Drop what is queued: the relay has it."""
        self._queue.clear()
        tasks = [*self._calls, *([self._connection_task] if self._connection_task else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._marker.close()
        await self._wire.aclose()

    def stamp(self) -> int | None:
        """Return Valkey's time in microseconds, never ahead of it; None if unknown."""
        return self._clock.now_us()

    def offer(self, stamp_us: int | None, transaction: PublishableTransaction) -> None:
        """Take a transaction's writes to publish them, or drop them."""
        if stamp_us is None or self._events is None:
            PUBLISHED.labels("unavailable").inc()
            return
        if self._queued_bytes >= MAX_QUEUED_BYTES:
            PUBLISHED.labels("full").inc()
            return
        groups = transaction.groups()
        missing = [len(groups)]
        for group in groups:
            call = _Call(transaction.xid, group, stamp_us, time.monotonic(), missing)
            self._queue.append(call)
            self._queued_bytes += call.size_bytes
        self._flush()

    def _flush(self) -> None:
        """Start a call. It takes what is queued in the loop's next iteration, so that transactions
        that end together are sent together.
        """
        if self._queue and not self._is_starting and len(self._calls) < MAX_CALLS:
            self._is_starting = True
            task = self._loop.create_task(self._publish())
            self._calls.add(task)
            task.add_done_callback(self._on_call_done)

    def _on_call_done(self, task: asyncio.Task[None]) -> None:
        self._calls.discard(task)
        if not task.cancelled() and (failed := task.exception()) is not None:
            logger.error("publishing failed", exc_info=failed)
        self._flush()

    def _next_batch(self) -> list[_Call]:
        batch, size = [self._queue.popleft()], 0
        size = batch[0].size_bytes
        while self._queue and size + self._queue[0].size_bytes <= MAX_CALL_BYTES:
            batch.append(self._queue.popleft())
            size += batch[-1].size_bytes
        self._queued_bytes -= size
        return batch

    async def _publish(self) -> None:
        """Append with the oldest stamp, so that none appears newer than it is."""
        self._is_starting = False
        batch, events = self._next_batch(), self._events
        self._flush()
        if events is None or not await self._append(events, batch):
            PUBLISHED.labels("failed").inc(len(batch))
            return
        now_s = time.monotonic()
        for call in batch:
            PUBLISH_DURATION.observe(now_s - call.committed_s)
            call.missing[0] -= 1
            if not call.missing[0]:
                _PUBLISHED.inc()
                self._marker.add(call.xid)

    async def _append(self, events: EventLayer, batch: Sequence[_Call]) -> bool:
        groups = [call.group for call in batch]
        try:
            answer = await events.append(min(call.stamp_us for call in batch), None, groups)
        except RedisError as error:
            self._disconnect(events, str(error))
            return False
        self._clock.observe(answer.time_us)
        if answer.verdict is AppendVerdict.ABSENT:
            self._disconnect(events, "its streams are not initialised")
        return answer.verdict is AppendVerdict.OK

    def _disconnect(self, events: EventLayer, why: str) -> None:
        """Publish nothing until a server responds again."""
        if self._events is events:
            logger.warning("the relay publishes until the event layer is available again: %s", why)
            self._events = None
            self._clock.forget()
            self._connection_lost.set()

    async def _maintain_connection(self) -> None:
        """Connect to the event layer, follow its clock, and connect again when it is lost."""
        while True:
            self._connection_lost.clear()
            events = await self._find()
            if events and self._events is None:
                logger.info("publishing after each commit")
            self._events = events
            try:
                async with asyncio.timeout(REFRESH_S if events else RETRY_S):
                    await self._connection_lost.wait()
            except TimeoutError:
                continue

    async def _find(self) -> EventLayer | None:
        """Return the streams of the current installation epoch, if a relay has created them."""
        try:
            async with relay_pool().session() as session:
                (row,) = await session.run([(INSTALLATION, ())])
            events = EventLayer(self._wire, row.integer(0, 0))
            status = await events.read_status()
        except (RedisError, psycopg.Error, OSError) as error:
            logger.debug("the event layer is unavailable: %s", error)
            self._clock.forget()
            return None
        if not status.random:
            self._clock.forget()
            return None
        self._clock.observe(status.time_us)
        return events
