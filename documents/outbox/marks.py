"""Marks: which transactions have been published, so that the relay need not publish them.

A mark is a separate row, since updating rows of the outbox would write each of them twice. Nothing
waits for marks, and they need not survive a crash: without its mark, a row is published again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import psycopg

from documents.outbox.database import CURRENT_SLOT, relay_pool
from foundation.metrics import MARKS_LOST
from foundation.postgres import Statement
from foundation.postgres.arrays import xid8s
from foundation.postgres.session import Oid, Step

logger = logging.getLogger(__name__)

#: Marks are collected for this long, which leaves the relay most of its quarter of a second.
COLLECT_S = 0.05
MAX_WAITING = 50_000

_MARK = Statement(
    f"INSERT INTO documents_outboxmark (slot, xid) SELECT {CURRENT_SLOT}, xid "  # noqa: S608 -- a constant
    "FROM unnest($1) AS published(xid)",
    (Oid.XID8_ARRAY,),
)


def mark(xids: Sequence[int]) -> Step:
    """Record that all rows of these transactions have been published."""
    return _MARK, (xid8s(xids),)


class Marker:
    """Writes a process's marks, many at a time. For one event loop."""

    def __init__(self) -> None:
        self._waiting: list[int] = []
        self._writing: asyncio.Task[None] | None = None

    def add(self, xid: int) -> None:
        """Mark a transaction soon. On overflow or failure, the relay does it."""
        if len(self._waiting) >= MAX_WAITING:
            MARKS_LOST.inc()
            return
        self._waiting.append(xid)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())

    async def close(self) -> None:
        """Write what has been collected."""
        if self._writing is not None:
            await self._writing

    async def _write(self) -> None:
        try:
            while self._waiting:
                await asyncio.sleep(COLLECT_S)
                xids, self._waiting = self._waiting, []
                await self._mark(xids)
        finally:
            self._writing = None

    async def _mark(self, xids: Sequence[int]) -> None:
        try:
            async with relay_pool().session() as session:
                await session.run([mark(xids)])
        except psycopg.Error as error:
            MARKS_LOST.inc(len(xids))
            logger.warning("%d marks of published transactions were lost: %s", len(xids), error)
