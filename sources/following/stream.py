"""Applies the changes committed to a table as they arrive.

Three tasks: one reads the slot; one applies changes in groups and confirms them to the server; one
monitors slot and table. When one ends, the others are cancelled.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from uuid import UUID

import psycopg

from foundation import metrics
from foundation.event_loop_budget import EventLoopBudget
from rillbase_native import Operations
from sources.conditions import CopyRequired, invalid_document
from sources.following import documents, fair_share, upkeep
from sources.following.inbox import MAX_CHANGES, Inbox
from sources.following.net_changes import ChangeWithLayout, NetChanges, ids_of_incomplete_rows
from sources.following.offload import converted, on_thread
from sources.following.progress import LogPosition, SourceProgress
from sources.following.transactions import Assembler, SourceTransaction
from sources.mapping.shape import Fields
from sources.models import Source
from sources.upstream import pgoutput
from sources.upstream.catalog import LOOK_TIMEOUT_S, SourceTable
from sources.upstream.pgoutput import RelationColumn
from sources.upstream.wire import Keepalive, ReplicationWire

#: A transaction too large for one write is applied in parts of this many changes.
PART_CHANGES = 5_000
#: Parts end earlier, at this many bytes, if rows are large.
PART_BYTES = 32 * 1024 * 1024
#: Maximum interval between status updates to the server.
TELL_S = 5.0
#: Minimum interval between confirmations while there is more to apply.
CONFIRM_S = 0.1
#: How often slot and table are checked.
WATCH_S = 2.0


class ReplicationStream:
    """The changes of one replication connection."""

    def __init__(
        self,
        progress: SourceProgress,
        table: SourceTable,
        watching: psycopg.AsyncConnection,
        wire: ReplicationWire,
    ) -> None:
        self._progress = progress
        self._table = table
        self._watching = watching
        self._wire = wire
        self._inbox = Inbox()
        columns = tuple(RelationColumn(*column) for column in table.columns)
        self._assembler = Assembler(table.oid, columns)
        self._layout = table.shape.layout([name for name, _, _ in table.columns])
        #: The log has been read up to this position, with no further change of the table.
        self._nothing_up_to = 0
        self._lag_ms = 0
        self._confirmed_s = 0.0

    async def run(self) -> None:
        """Follow until a task raises."""
        metered = (
            fair_share.sources.metered(self._source_id, part)
            for part in (self._read(), self._apply_all())
        )
        tasks = [asyncio.create_task(part) for part in (*metered, self._watch())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._inbox.close()
            self._assembler.close()

    async def _read(self) -> None:
        budget = EventLoopBudget()
        async for message in self._wire.messages():
            if budget.is_spent:
                await fair_share.sources.turn(self._source_id)
                await budget.yield_if_spent()
            if isinstance(message, Keepalive):
                if self._assembler.is_between and not len(self._inbox):
                    up_to = min(message.up_to, pgoutput.MAX_LSN)
                    self._nothing_up_to = max(self._nothing_up_to, up_to)
                if message.wants_reply:
                    self._wire.confirm(self._progress.position.confirmed)
                continue
            transaction = self._assembler.feed(message.content)
            if transaction is not None:
                self._lag_ms = max(0, message.sent_us - transaction.committed_us) // 1000
                if transaction.commit_lsn >= self._progress.position.confirmed:
                    await self._inbox.put(transaction)
                else:
                    transaction.close()

    async def _apply_all(self) -> None:
        while True:
            if await self._inbox.wait(TELL_S):
                await fair_share.sources.turn(self._source_id)
                group = self._inbox.first(fair_share.sources.rows(self._source_id, MAX_CHANGES))
                await self._apply(group)
                self._inbox.remove_first(len(group))
            else:
                self._lag_ms = 0
                if self._nothing_up_to > self._progress.position.confirmed:
                    await self._progress.confirm(self._nothing_up_to)
            self._confirm()

    def _confirm(self) -> None:
        """Confirm the position to the server.

        While more is waiting, confirmations are rate-limited: each wakes the server's sender.
        """
        now_s = time.monotonic()
        if len(self._inbox) and now_s - self._confirmed_s < CONFIRM_S:
            return
        self._confirmed_s = now_s
        self._wire.confirm(self._progress.position.confirmed)

    async def _apply(self, group: list[SourceTransaction]) -> None:
        (first, *_), last = group, group[-1]
        if first.copy_reason:
            raise CopyRequired(first.copy_reason)
        started_s = time.monotonic()
        if first.is_whole:
            size = sum(transaction.size for transaction in group)
            changes = await converted(self._source_id, size, self._with_layouts(group))
            await self._write(changes, size, LogPosition(last.end_lsn))
        else:
            await self._apply_parts(first)
        metrics.SOURCE_TRANSACTIONS.inc(len(group))
        metrics.SOURCE_CHANGES.inc(sum(transaction.count for transaction in group))
        metrics.SOURCE_GROUPS.observe(time.monotonic() - started_s)

    async def _apply_parts(self, transaction: SourceTransaction) -> None:
        """Apply a large transaction in parts. Each part is recorded, so none is applied twice."""
        start = self._progress.position
        applied_before = start.part if start.part_of == transaction.commit_lsn else 0
        applied = applied_before
        messages = islice(transaction.rows(), applied_before, None)
        while True:
            await fair_share.sources.turn(self._source_id)
            part, size = await on_thread(self._source_id, lambda: self._next_part(messages))
            if len(part) < PART_CHANGES and size <= PART_BYTES:
                break
            applied += len(part)
            position = replace(start, part_of=transaction.commit_lsn, part=applied)
            await self._write(part, size, position)
            self._wire.confirm(start.confirmed)
        await self._write(part, size, LogPosition(transaction.end_lsn))

    def _next_part(self, messages: Iterator[bytes]) -> tuple[list[ChangeWithLayout], int]:
        """Read the next part of a large transaction. Return it with its size in bytes."""
        part: list[ChangeWithLayout] = []
        size = 0
        for message in messages:
            part.append((pgoutput.read_change(message), self._layout))
            size += len(message)
            if len(part) == PART_CHANGES or size > PART_BYTES:
                break
        return part, size

    def _with_layouts(self, group: Sequence[SourceTransaction]) -> Iterator[ChangeWithLayout]:
        for transaction in group:
            for message in transaction.rows():
                yield pgoutput.read_change(message), self._layout

    async def _write(
        self, changes: list[ChangeWithLayout], size: int, position: LogPosition
    ) -> None:
        documents_before = await self._documents_before(ids_of_incomplete_rows(changes))
        net = NetChanges(self._table.shape, documents_before)
        await converted(self._source_id, size, net.add_each(changes))
        texts = await converted(self._source_id, size, net.operations())
        operations = None
        if texts:
            text = '{"operations":[' + ",".join(texts) + '],"ordered":true}'
            operations = await on_thread(self._source_id, lambda: _parsed(text, len(texts)))
        await self._progress.write(operations, position)

    async def _documents_before(self, identities: set[str]) -> dict[str, Fields]:
        """Return the documents with large values that changes left unchanged."""
        row, columns = self._progress.row, self._table.shape.columns
        bodies = await documents.read(row.tenant_id, row.collection_name, identities)
        return {identity: documents.fields_of(body, columns) for identity, body in bodies.items()}

    @property
    def _source_id(self) -> UUID:
        return self._progress.row.pk

    async def _watch(self) -> None:
        """Monitor slot and table, and update the status."""
        while True:
            async with asyncio.timeout(LOOK_TIMEOUT_S):
                await upkeep.check_slot(self._watching, self._progress, self._lag_ms)
            await self._progress.report_state(Source.State.LIVE)
            await asyncio.sleep(WATCH_S)
            async with asyncio.timeout(LOOK_TIMEOUT_S):
                await upkeep.check_table(self._watching, self._progress.row, self._table)


def _parsed(text: str, count: int) -> Operations:
    try:
        return Operations.parse(text.encode(), ndjson=False, max_operations=count)[0]
    except ValueError as invalid:
        raise invalid_document(invalid) from invalid
