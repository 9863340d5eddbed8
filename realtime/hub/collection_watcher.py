"""Notices within a second that access rules have changed, or that a collection is gone or has moved
to the other backend.

Changes of rules are detected in two ways: writes carry the version of the rules and are not shown
under older ones; and this check re-evaluates what has already been sent.
"""

from __future__ import annotations

import asyncio
import logging
from itertools import islice

import psycopg

from documents.backend import Backend
from documents.store.database import pool, scope
from foundation.errors import NotFound
from foundation.postgres import Statement, StatementResult
from foundation.postgres.session import Oid
from realtime.hub.query_subscriptions import (
    QueryDependency,
    QuerySubscription,
    QuerySubscriptionKind,
)

log = logging.getLogger(__name__)

CHECK_S = 0.4
#: Collections that are checked in one round trip.
TOGETHER = 200

_CURRENT = Statement(
    "SELECT rules_version, backend FROM documents_collection WHERE id = $1 AND state = 'active'",
    (Oid.UUID,),
)


class CollectionWatcher:
    """Checks the collections with subscriptions in this process."""

    def __init__(self, queries: QuerySubscriptionKind) -> None:
        self._queries = queries
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._check_repeatedly())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def check(self) -> None:
        """Check once."""
        watched = self._queries.by_reads
        reads = iter(list(watched))
        while batch := list(islice(reads, TOGETHER)):
            steps = [
                step
                for dependency in batch
                for step in (
                    scope(dependency.tenant_id),
                    (_CURRENT, (dependency.collection,)),
                )
            ]
            async with pool().session() as session:
                results = (await session.run(steps))[1::2]
            for dependency, result in zip(batch, results, strict=True):
                await _recheck_access(
                    dependency, list(watched.get(dependency, {}).values()), result
                )

    async def _check_repeatedly(self) -> None:
        while True:
            await asyncio.sleep(CHECK_S)
            try:
                await self.check()
            except (psycopg.Error, OSError) as error:
                log.warning("access rules could not be read: %s", error)


async def _recheck_access(
    reads: QueryDependency, watched: list[QuerySubscription], result: StatementResult
) -> None:
    if not result.rows:
        for subscription in watched:
            subscription.end(NotFound("The collection has been deleted."))
        return
    backend = Backend(result.text(0, 1))
    for subscription in watched:
        if subscription.backend != backend:
            await subscription.follow(backend)
    if reads.rules_version not in (0, result.integer(0, 0)):
        for subscription in watched:
            await subscription.judge(subscription.subscriber)
