"""Executes the relay's requests: the loop around `documents.outbox.machine`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time

import psycopg
from redis.exceptions import RedisError

from documents.outbox.entries import encode_tick_body
from documents.outbox.events import AppendResult, AppendVerdict, EventLayer
from documents.outbox.feed.loop import FeedLoop
from documents.outbox.machine import RelayMachine
from documents.outbox.requests import (
    AcquireLease,
    Append,
    EmptySlot,
    Fetch,
    Install,
    ListRows,
    MarkPublished,
    ProbeEventLayer,
    ProbeResult,
    Reply,
    Request,
    RequestDone,
    RequestFailed,
    SendTick,
    Trim,
)
from documents.outbox.rows import OutboxRows
from foundation import metrics
from foundation.environment import environment
from foundation.valkey_wire import ValkeyWire

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 2.0
#: A server counts as available once nothing has failed for this long. An event layer with a full
#: disk alternates between serving reads and rejecting writes, several times a second.
STEADY_S = 1.0
#: Appending a page takes milliseconds; a frozen server counts as failed.
ANSWER_TIMEOUT_S = 10.0

AtDatabase = AcquireLease | ListRows | Fetch | MarkPublished | EmptySlot
AtEvents = ProbeEventLayer | Install | Append | SendTick | Trim


class RelayLoop:
    """One relay with its connections. Several may run, in separate processes: one leads."""

    def __init__(self) -> None:
        self._relay = RelayMachine()
        self._rows = OutboxRows()
        self._wire = ValkeyWire(
            environment().events,
            connect_timeout_s=CONNECT_TIMEOUT_S,
            answer_timeout_s=ANSWER_TIMEOUT_S,
        )
        self._events: EventLayer | None = None
        #: The server that failed last, until it responds again.
        self._unavailable = ""
        self._failed_s = 0.0
        self._has_checked = False
        self._ticked_s: float | None = None
        self._feed = FeedLoop(lambda: self._relay.token)

    @property
    def ready(self) -> bool:
        """Whether it has requested the lease: it leads, or it would take over."""
        return self._has_checked

    def status(self) -> dict[str, object]:
        """Describe the state, for operators and probes."""
        since_s = None if self._ticked_s is None else round(time.monotonic() - self._ticked_s, 3)
        return {
            "leading": self._relay.token is not None,
            "token": self._relay.token,
            "seconds_since_tick": since_s,
            "unavailable": self._unavailable or None,
            "native_collections": self._feed.status(),
        }

    async def run(self) -> None:
        """Relay until cancelled, between two requests or in the middle of one."""
        feed = asyncio.create_task(self._feed.run(), name="feed")
        try:
            await self._run()
        finally:
            feed.cancel()
            await asyncio.gather(feed, return_exceptions=True)
            await self._release()

    async def _release(self) -> None:
        """Release the lease for the next relay."""
        if self._relay.token is not None:
            with contextlib.suppress(psycopg.Error):
                await self._rows.release(self._relay.token)
        await self._rows.close()
        await self._wire.aclose()

    async def _run(self) -> None:
        while True:
            step = self._relay.wake(time.monotonic())
            while step is not None:
                number, request = step
                reply = await self._reply(request)
                step = self._relay.receive(number, reply, time.monotonic())
            self._measure()
            await asyncio.sleep(max(0.0, self._relay.due_s - time.monotonic()))

    async def _reply(self, request: Request) -> Reply:
        """Execute a request. A failure of it does not end the relay."""
        server = "database" if isinstance(request, AtDatabase) else "event layer"
        try:
            reply = await self._carry_out(request)
        except (psycopg.Error, RedisError, OSError) as error:
            self._failed_s = time.monotonic()
            if self._unavailable != server:
                logger.warning("the relay waits for the %s: %s", server, error)
            self._unavailable = server
            return RequestFailed()
        except Exception:
            logger.exception("a request of the relay failed: %s", type(request).__name__)
            return RequestFailed()
        if self._unavailable == server and time.monotonic() - self._failed_s > STEADY_S:
            logger.info("the %s responds again", server)
            self._unavailable = ""
        return reply

    async def _carry_out(self, request: Request) -> Reply:
        if isinstance(request, AtDatabase):
            return await self._ask_database(request)
        reply = await self._ask_events(request)
        if isinstance(reply, AppendResult) and reply.verdict is not AppendVerdict.OK:
            metrics.RELAY_REFUSED.labels(reply.verdict.value).inc()
            logger.info("the event layer rejected the relay: %s", reply.verdict.value)
        return reply

    async def _ask_database(self, request: AtDatabase) -> Reply:
        rows = self._rows
        match request:
            case AcquireLease():
                claimed = await rows.claim(request)
                self._has_checked = True
                if claimed.token is not None:
                    logger.info("this relay holds the lease, with token %d", claimed.token)
                return claimed
            case ListRows():
                listed = await rows.list_rows(request)
                if not request.marked_too:
                    metrics.RELAY_UNMARKED.set(len(listed.rows))
                return listed
            case Fetch():
                return await rows.fetch(request)
            case MarkPublished(xids=xids):
                await rows.mark(xids)
            case EmptySlot(slot=slot):
                if await rows.empty(slot):
                    logger.debug("slot %d of the outbox is empty", slot)
        return RequestDone()

    async def _ask_events(self, request: AtEvents) -> Reply:
        events = self._layer(request.installation)
        match request:
            case ProbeEventLayer():
                return ProbeResult(await events.read_status())
            case Install(token=token, epochs=epochs):
                logger.info("initialising the event layer for grid epochs %s", epochs)
                return await events.install(token, epochs)
            case Append(groups=groups):
                answer = await events.append(request.stamp_us, request.token, groups)
                if answer.verdict is AppendVerdict.OK:
                    metrics.RELAY_PUBLISHED.inc(sum(len(group.entries) for group in groups))
                return answer
            case Trim():
                return await events.trim()
            case SendTick():
                return await self._tick(events, request)

    async def _tick(self, events: EventLayer, request: SendTick) -> AppendResult:
        body = encode_tick_body(request.token, request.incarnation, request.snapshot)
        answer = await events.tick(
            request.stamp_us, request.token, request.status, request.incarnation, body
        )
        if answer.verdict is AppendVerdict.OK:
            metrics.RELAY_TICKS.inc()
            self._ticked_s = time.monotonic()
        return answer

    def _layer(self, installation: int) -> EventLayer:
        if self._events is None or self._events.installation != installation:
            self._events = EventLayer(self._wire, installation)
        return self._events

    def _measure(self) -> None:
        metrics.RELAY_LEADING.set(self._relay.token is not None)
        oldest_ms = self._rows.oldest_ms
        lag_s = 0.0 if oldest_ms is None else max(0.0, time.time() - oldest_ms / 1000)
        metrics.RELAY_LAG.set(lag_s)
