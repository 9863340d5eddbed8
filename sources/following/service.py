"""Follows all sources of an installation from one process.

Several processes may run; the one that holds a PostgreSQL advisory lock leads. If two believe that
they lead, a source's fence still admits only one follower.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass
from uuid import UUID

import psycopg
from django.db import DatabaseError

from documents.models import Collection
from documents.outbox import publisher
from foundation import metrics
from foundation.api.rendering import timestamp
from foundation.lead import Lead
from sources.following import rows
from sources.following.follower import Follower
from sources.following.idle import pause
from sources.following.removal import remove
from sources.following.rows import ALIAS, on_rows
from sources.models import Source
from tenants.models import Tenant

logger = logging.getLogger(__name__)

#: How often the control plane is polled for work.
RELOAD_S = 0.5
RETRY_S = 1.0
_UNAVAILABLE = (psycopg.Error, DatabaseError, OSError)


@dataclass(slots=True)
class _FollowerTask:
    """The task of a source, and the version of the row it was started for."""

    row: Source
    task: asyncio.Task[None]


class FollowerService:
    """The follower service of one event loop."""

    def __init__(self) -> None:
        self._lead = Lead("sources")
        self._followers: dict[UUID, _FollowerTask] = {}
        self._has_checked = False
        self._unavailable = ""

    @property
    def ready(self) -> bool:
        """Whether this process leads, or is ready to take over."""
        return self._has_checked

    def status(self) -> dict[str, object]:
        """Return the status, for operators and probes."""
        return {
            "leading": self._lead.is_leader,
            "unavailable": self._unavailable or None,
            "sources": {
                str(key): _describe(follower.row) for key, follower in self._followers.items()
            },
        }

    async def run(self) -> None:
        """Follow until cancelled."""
        # Publish writes from this process, not only from the relay.
        publisher.publish_from_here()
        try:
            await self._run()
        finally:
            await self._stop_all()
            await asyncio.to_thread(self._lead.end)
            await rows.disconnect()

    async def _run(self) -> None:
        while True:
            try:
                leads = await asyncio.to_thread(self._lead.take)
                metrics.SOURCES_LEADING.set(leads)
                if leads:
                    await self._reload()
                else:
                    await self._stop_all()
                self._has_checked, self._unavailable = True, ""
                await asyncio.sleep(RELOAD_S)
            except _UNAVAILABLE as error:
                if self._unavailable != type(error).__name__:
                    logger.warning("sources are paused: %s", error)
                self._unavailable = type(error).__name__
                await asyncio.sleep(RETRY_S)

    async def _stop_all(self) -> None:
        """Give up leadership."""
        for key in list(self._followers):
            await self._drop(key)

    async def _drop(self, key: UUID) -> None:
        follower = self._followers.pop(key)
        follower.task.cancel()
        await asyncio.gather(follower.task, return_exceptions=True)

    async def _reload(self) -> None:
        """Reload the list of sources, and start or stop their tasks."""
        rows = {row.pk: row for row in await on_rows(load)}
        for key, follower in list(self._followers.items()):
            row = rows.get(key)
            if (
                row is None
                or row.version != follower.row.version
                or row.desired_state != follower.row.desired_state
            ):
                await self._drop(key)
            elif follower.task.done():
                self._note_end(follower)
                await self._drop(key)
            else:
                follower.row = row
        for key, row in rows.items():
            if key not in self._followers:
                self._followers[key] = _FollowerTask(row, asyncio.create_task(_task(row)))
        _count(list(rows.values()))

    @staticmethod
    def _note_end(follower: _FollowerTask) -> None:
        error = follower.task.exception() if not follower.task.cancelled() else None
        if error is not None:
            logger.error("a source failed", exc_info=error, extra={"source": str(follower.row.pk)})


def _task(row: Source) -> Coroutine[None, None, None]:
    if row.desired_state == Source.DesiredState.REMOVED:
        return remove(row)
    if row.desired_state == Source.DesiredState.PAUSED:
        return pause(row)
    return Follower(row).run()


def load() -> list[Source]:
    """Return all sources with their desired states.

    Sources of deleted collections are removed; those of suspended or deleted tenants are idle.
    """
    sources = list(Source.unscoped.using(ALIAS).all())
    collections = Collection.unscoped.using(ALIAS).filter(
        pk__in={row.collection_id for row in sources}, state=Collection.State.ACTIVE
    )
    existing = set(collections.values_list("pk", flat=True))
    tenants = Tenant.objects.using(ALIAS).filter(
        pk__in={row.tenant_id for row in sources}, state=Tenant.State.ACTIVE
    )
    active = set(tenants.values_list("pk", flat=True))
    for row in sources:
        if row.collection_id not in existing:
            row.desired_state = Source.DesiredState.REMOVED
        elif row.tenant_id not in active and row.desired_state == Source.DesiredState.RUNNING:
            row.desired_state = Source.DesiredState.PAUSED
    return sources


def _count(rows: list[Source]) -> None:
    """Update the metrics of all sources' states."""
    running = [row for row in rows if row.desired_state == Source.DesiredState.RUNNING]
    states = Counter(map(_state, rows))
    for state in Source.State.values:
        metrics.SOURCES.labels(state).set(states[Source.State(state)])
    metrics.SOURCE_SLOT_BYTES.set(max((row.slot_bytes or 0 for row in rows), default=0))
    metrics.SOURCE_LAG.set(max((row.lag_ms or 0 for row in running), default=0) / 1000)
    metrics.SOURCES_SEEN.set(time.time())


def _state(row: Source) -> Source.State:
    """Return a source's state, even before its task has recorded one."""
    desired_states = {
        Source.DesiredState.PAUSED: Source.State.PAUSED,
        Source.DesiredState.REMOVED: Source.State.REMOVING,
    }
    return desired_states.get(Source.DesiredState(row.desired_state), Source.State(row.state))


def _describe(row: Source) -> dict[str, object]:
    return {
        "state": row.state,
        "condition": row.condition or None,
        "slot_bytes": row.slot_bytes,
        "lag_bytes": row.lag_bytes,
        "seen_at": None if row.seen_at is None else timestamp(row.seen_at),
    }
