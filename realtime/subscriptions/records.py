"""The records of a process's subscriptions, and requests to end some of them.

Nothing here is needed for delivery: while Valkey is unavailable, no records are written, and the
list is empty.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from typing import NamedTuple
from uuid import UUID

from redis.exceptions import RedisError

from connections.callers import ConnectionCaller
from connections.connection_registry import ConnectionRegistry, RegisteredConnection
from connections.subscriptions import OpenSubscription, Subscription
from foundation.api.rendering import to_json
from foundation.errors import SubscriptionEnded
from foundation.event_server import wire
from foundation.json_types import JsonObject
from foundation.metrics import SUBSCRIPTIONS
from realtime.subscriptions import names
from tenants import error_log, usage

log = logging.getLogger(__name__)

REPORT_S = 2.0
LISTEN_S = 0.4
KILLS_AT_ONCE = 1_000
#: Subscriptions described at once, and the pause after them: no caller waits for this.
AT_ONCE, PAUSE_S = 20, 0.005
STATES = ("starting", "live", "stale")
#: The members of a description that name the source.
SOURCES = ("collection", "topic", "aggregate")


class SubscriptionReport(NamedTuple):
    """What was reported of a subscription."""

    caller: ConnectionCaller
    description: JsonObject
    #: The members of the record that do not change while these two do not, without the last brace.
    fixed: bytes
    state: str
    #: Sent so far.
    events: int
    at_s: float


class SubscriptionRecords:
    """The records of one process."""

    def __init__(self, process: str, registry: ConnectionRegistry) -> None:
        self._process = process
        self._registry = registry
        #: The last reports, by subscription.
        self._before: dict[str, SubscriptionReport] = {}
        #: Subscriptions that were behind when last reported.
        self._stale: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self._tasks = [
            asyncio.create_task(self._report_repeatedly()),
            asyncio.create_task(self._keep_listening()),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []

    async def report(self) -> None:
        """Report the current subscriptions, with pauses, so that events do not wait."""
        by_tenant: dict[UUID, list[bytes]] = defaultdict(list)
        states = Counter[str]()
        sent = Counter[UUID]()
        stale: set[str] = set()
        before, self._before = self._before, {}
        described = 0
        for connection in list(self._registry.connections.values()):
            if (caller := connection.caller) is None:
                continue
            tenant_id = caller.tenant.id
            rows = by_tenant[tenant_id]
            for opened in connection.subscriptions:
                if opened.subscription is None or len(rows) >= names.MAX_SHOWN:
                    continue
                previous = before.get(opened.id)
                report, row = self._row(
                    connection.id, caller, opened, opened.subscription, previous
                )
                self._before[opened.id] = report
                sent[tenant_id] += report.events - (previous.events if previous else 0)
                states[report.state] += 1
                if report.state == "stale":
                    stale.add(opened.id)
                    self._note_stale(opened, report)
                rows.append(row)
                described += 1
                if described % AT_ONCE == 0:
                    await asyncio.sleep(PAUSE_S)
        self._stale = stale
        for tenant_id, events in sent.items():
            if events:
                usage.count(tenant_id, usage.LIVE_EVENTS, events)
        for state in STATES:
            SUBSCRIPTIONS.labels(state).set(states[state])
        await asyncio.gather(
            *(self._write(tenant_id, rows) for tenant_id, rows in by_tenant.items())
        )

    async def listen(self) -> None:
        """End the subscriptions that members have asked to end."""
        ended_ids = await wire().call("SPOP", names.kills(self._process), KILLS_AT_ONCE)
        if not isinstance(ended_ids, list) or not ended_ids:
            return
        ids = {item.decode() for item in ended_ids if isinstance(item, bytes)}
        _end(self._registry.connections.values(), ids)

    def ended(self, message: JsonObject) -> None:
        """End the subscription that a message of another server names, if it is of this process."""
        parts = names.split(str(message.get("id")))
        if parts is not None and parts[0] == self._process:
            _end(self._registry.of_tenant(UUID(str(message.get("tenant")))), {parts[1]})

    def _row(
        self,
        connection: str,
        caller: ConnectionCaller,
        opened: OpenSubscription,
        subscription: Subscription,
        before: SubscriptionReport | None,
    ) -> tuple[SubscriptionReport, bytes]:
        """Return what is reported of a subscription, and its record."""
        figures, now_s = subscription.figures(), time.monotonic()
        sent = figures.get("events", 0)
        events = sent if isinstance(sent, int) else 0
        description = subscription.describe()
        if before is None or before.caller is not caller or before.description != description:
            head: JsonObject = {
                "id": names.public_id(self._process, opened.id),
                "connection": connection,
                "name": opened.name,
                "user": caller.principal.label,
                "principal": caller.principal.actor,
                **description,
            }
            fixed = to_json(head)[:-1]
        else:
            fixed = before.fixed
        elapsed_s = 0.0 if before is None else now_s - before.at_s
        rate = (events - before.events) / elapsed_s if before and elapsed_s > 0 else 0.0
        changing: JsonObject = {
            "age_s": round(time.time() - opened.begun_at, 3),
            "events_per_s": round(rate, 3),
            **figures,
        }
        state = str(figures.get("state"))
        report = SubscriptionReport(caller, description, fixed, state, events, now_s)
        return report, b"%b,%b" % (fixed, to_json(changing)[1:])

    def _note_stale(self, opened: OpenSubscription, report: SubscriptionReport) -> None:
        """Record in the tenant's error log, once, that a subscription has fallen behind."""
        if opened.id in self._stale:
            return
        described, caller = report.description, report.caller
        watched = next((described[name] for name in SOURCES if described.get(name)), "")
        error_log.note(
            caller.tenant.id,
            error_log.Area.LIVE,
            "subscription_stale",
            place=str(watched),
            actor=caller.principal.actor,
        )

    async def _write(self, tenant_id: UUID, rows: list[bytes]) -> None:
        index = names.processes(tenant_id)
        key = names.record(tenant_id, self._process)
        record = b"[" + b",".join(rows) + b"]"
        await asyncio.gather(
            wire().call("SET", key, record, "EX", names.RECORD_LIFETIME_S),
            wire().call("ZADD", index, int(time.time()), self._process),
            wire().call("EXPIRE", index, names.RECORD_LIFETIME_S),
        )

    async def _report_repeatedly(self) -> None:
        while True:
            await asyncio.sleep(REPORT_S)
            try:
                await self.report()
            except RedisError as error:
                log.debug("subscriptions could not be reported: %s", error)

    async def _keep_listening(self) -> None:
        while True:
            await asyncio.sleep(LISTEN_S)
            try:
                await self.listen()
            except RedisError as error:
                log.debug("the request to end subscriptions could not be read: %s", error)


def _end(connections: Iterable[RegisteredConnection], ids: Collection[str]) -> None:
    for connection in list(connections):
        for opened in connection.subscriptions:
            if opened.id in ids:
                connection.end(opened.name, SubscriptionEnded())
