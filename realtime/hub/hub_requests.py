"""Handles the requests of hubs: registers queries, renews them, and reads missed notifications."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence

import psycopg
from redis.exceptions import RedisError

from documents.store.notices import Notices
from foundation import bulk_budget, event_server
from foundation.errors import CATALOGUE, ApiError, Internal
from foundation.limits import Limit, limiter
from foundation.metrics import REGISTRATIONS
from realtime.events import layer as events
from realtime.hub.logs import READ_AT_ONCE, LogEntry, log_entries, next_read_size
from realtime.hub.running_hub import HubRequest, RunningHub
from realtime.registration import fetches, renewals
from realtime.registration.registration import (
    CollectionReference,
    NotWatched,
    RegistrationBatcher,
    RulesChanged,
    as_tuple,
    register,
)
from rillbase_native import (
    FailQuery,
    FetchDocuments,
    LiveQuery,
    LogUnevaluated,
    Question,
    RecheckAccess,
    RegisterQuery,
    RenewQuery,
    ReplayLog,
)
from tenants.error_log import Area

log = logging.getLogger(__name__)

#: Pauses between attempts to register while a server is unavailable.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0
REGISTRATIONS_AT_ONCE = 8
MAX_REPLAYED = 100_000


class HubRequests:
    """Serves the requests of a process's hubs."""

    def __init__(self) -> None:
        self._together = RegistrationBatcher(REGISTRATIONS_AT_ONCE)
        #: Queries whose subscribers are being checked. The hub repeats its request meanwhile.
        self._judged: set[bytes] = set()

    async def serve(self, running: RunningHub, request: HubRequest) -> None:
        """Handle one request of a hub."""
        match request:
            case RegisterQuery():
                await self._register(running, request.query)
            case RenewQuery():
                await self._renew(running, request.query, request.slack)
            case FetchDocuments():
                await self._fetch(running, request.query, request.question)
            case RecheckAccess():
                await self.judge(running, request.query)
            case FailQuery():
                self._fail(running, request)
            case LogUnevaluated():
                self._log_unevaluated(running, request.query, request.count)
            case ReplayLog():
                entries = await _read_missed(running, request)
                running.set_trace_time()
                running.hub.replay(request.subscription, entries)

    async def judge(self, running: RunningHub, query: bytes) -> None:
        """Check the rules for all subscribers of a query in this process."""
        if query in self._judged:
            return
        self._judged.add(query)
        try:
            for watched in running.subscriptions(query):
                await watched.judge(watched.subscriber)
        finally:
            self._judged.discard(query)

    def _fail(self, running: RunningHub, request: FailQuery) -> None:
        error = CATALOGUE.get(request.code, Internal)(request.detail)
        for watched in running.subscriptions(request.query):
            watched.note(error)
        running.hub.refused(request.query, _problem(error))

    def _log_unevaluated(self, running: RunningHub, query: bytes, count: int) -> None:
        """Add to the error log that documents cannot be evaluated for a live query."""
        for watched in running.subscriptions(query)[:1]:
            source = watched.source
            notices = Notices(count, "Live queries cannot evaluate these expressions.")
            notices.log(source.tenant_id, source.collection, area=Area.LIVE)

    async def _register(self, running: RunningHub, query: bytes) -> None:
        """Register a query, retrying as long as it has subscribers."""
        pause_s, grid = FIRST_PAUSE_S, running.grid
        while True:
            live_query = running.hub.query(query)
            watched = running.subscriptions(query)
            if live_query is None or not watched or running.grid is not grid:
                return
            try:
                source = watched[0].source
                attempt = self._try(running, live_query, source)
                await bulk_budget.subscription_starts.metered(source.tenant_id, attempt)
            except NotWatched:
                return
            except RulesChanged:
                await self.judge(running, query)
            except ApiError as error:
                if error.status < 500:  # noqa: PLR2004 -- HTTP's classes
                    REGISTRATIONS.labels("refused").inc()
                    for subscription in watched:
                        subscription.note(error)
                    running.hub.refused(query, _problem(error))
                    return
            except (RedisError, psycopg.Error, OSError) as error:
                log.info("a query waits for its registration: %s", error)
            else:
                REGISTRATIONS.labels("registered").inc()
                return
            REGISTRATIONS.labels("unavailable").inc()
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _try(
        self, running: RunningHub, query: LiveQuery, source: CollectionReference
    ) -> None:
        grid = running.grid
        attempt = running.hub.asked(query.hash)
        if attempt is None:
            return
        registered = await self._together.register(
            running.layer,
            grid,
            running.name,
            query,
            source,
            lambda: bool(running.subscriptions(query.hash)),
        )
        if running.grid is not grid:
            # It has been requested again, for the grid that is followed now.
            return
        running.set_trace_time()
        running.hub.registered(
            query.hash,
            attempt,
            registered.activation,
            registered.request,
            registered.log_end,
            as_tuple(registered.snapshot),
            registered.rows,
        )
        running.hub.unevaluated(query.hash, registered.unevaluated)
        self._log_unevaluated(running, query.hash, registered.unevaluated)
        await running.release([query.hash])

    async def _renew(self, running: RunningHub, query: bytes, slack: int) -> None:
        """Request a renewal of a query, by a worker if there is one, once the limits allow it."""
        live_query = await _when_there_is_room(running, query, renewals.limits(query))
        watched = running.subscriptions(query)
        if live_query is None or not watched:
            return
        wider, source = live_query.with_slack(slack), watched[0].source
        try:
            epoch = running.grid.epoch
            await asyncio.to_thread(renewals.dispatch, running.name, epoch, wider, source)
        except Exception:
            log.warning(
                "no worker is available to renew a query, so the server does it itself",
                exc_info=True,
            )
            await register(running.layer, running.grid, running.name, wider, source, renewal=True)

    async def _fetch(self, running: RunningHub, query: bytes, encoded: bytes) -> None:
        """Request a fetch of single documents for the sort node, by only one of the app servers."""
        question = Question.read(encoded)
        if not (await limiter().acheck(fetches.turn_limits(question))).allowed:
            return
        live_query = await _when_there_is_room(running, query, fetches.limits(query))
        watched = running.subscriptions(query)
        if live_query is None or not watched:
            return
        grid, source = running.grid, watched[0].source
        try:
            await asyncio.to_thread(fetches.dispatch, grid.epoch, live_query, source, encoded.hex())
        except Exception:
            log.warning(
                "no worker is available to read documents, so the server does it itself",
                exc_info=True,
            )
            await fetches.fetch(running.layer, grid, live_query, source, question)


async def _when_there_is_room(
    running: RunningHub, query: bytes, limits: Sequence[Limit]
) -> LiveQuery | None:
    """Return the query once the limits allow reading it; None: it has no subscribers any more."""
    while (live_query := running.hub.query(query)) is not None:
        decision = await limiter().acheck(limits)
        if decision.allowed:
            break
        await asyncio.sleep(decision.retry_after_s or LONGEST_PAUSE_S)
    return live_query


async def _read_missed(running: RunningHub, request: ReplayLog) -> list[LogEntry] | None:
    """Return a part of a log; None: the log no longer has all of it."""
    stream = events.log(running.grid.prefix, running.grid.epoch, request.partition)
    wire, missed = event_server.wire(), list[LogEntry]()
    after, at_once = request.after, READ_AT_ONCE
    try:
        while True:
            reply = await wire.call("XRANGE", stream, f"({after}", request.upto, "COUNT", at_once)
            page = log_entries(reply)
            missed += page
            if len(missed) >= MAX_REPLAYED:
                return None
            if len(page) < at_once:
                break
            after, at_once = page[-1][0], next_read_size(page)
        first = log_entries(await wire.call("XRANGE", stream, "-", "+", "COUNT", 1))
    except RedisError:
        return None
    # The log may have been trimmed meanwhile.
    is_complete = bool(first) and _order(first[0][0]) <= _order(request.after)
    return missed if is_complete else None


def _order(position: str) -> tuple[int, int]:
    ms, _, number = position.partition("-")
    return int(ms), int(number)


def _problem(error: ApiError) -> str:
    return json.dumps(error.problem())
