"""Records as writes: a thousand per transaction, each record independent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID
from weakref import WeakValueDictionary

from data_plane.http.body import ClientGone
from documents.store.group import NotOneTransaction
from documents.store.write import WriteCall
from documents.store.writer import write
from documents.transfer import jobs
from documents.transfer.claimed_import import ClaimedImport
from documents.transfer.import_record import ImportRecord
from documents.transfer.jobs import MAX_ERRORS, ImportProgress
from documents.transfer.record_errors import error_of
from foundation.errors import ApiError, DuplicateId
from foundation.refusals import as_api_error
from rillbase_native import Operation, Operations, Outcomes, QueryError, Value
from tenants.principals import Principal

BATCH_RECORDS = 1_000
#: Size of a batch of records. It waits for its turn in memory, with several copies while it is
#: written.
BATCH_BYTES = 1024 * 1024
#: Imports of one tenant that are read concurrently. Others wait unread.
OF_ONE_TENANT = 4

_running: WeakValueDictionary[UUID, asyncio.Semaphore] = WeakValueDictionary()


def tenants_imports(tenant_id: UUID) -> asyncio.Semaphore:
    """Return the semaphore that an import acquires before its body is read."""
    return _running.setdefault(tenant_id, asyncio.Semaphore(OF_ONE_TENANT))


class BatchRecord(NamedTuple):
    """A record of a batch: an operation, or the reason why there is none."""

    #: Its place in the batch, from 1.
    number: int
    record: ImportRecord
    operation: Operation | ApiError


@dataclass(slots=True)
class ImportBatch:
    """Records that are written together; those that cannot be parsed are already errors."""

    records: int = 0
    size: int = 0
    #: Those that are not blank.
    requests: list[BatchRecord] = field(default_factory=list)

    def add(self, record: ImportRecord, mode: str) -> None:
        self.records += 1
        # A blank line counts too: a stream of nothing else must not grow a batch forever.
        self.size += record.size + 1
        operation: Operation | ApiError
        try:
            document = record.read()
            if document is None:
                return
            operation = _operation(document, mode)
        except QueryError as error:
            operation = as_api_error(error)
        except ApiError as error:
            operation = error
        self.requests.append(BatchRecord(self.records, record, operation))

    @property
    def is_full(self) -> bool:
        return len(self.requests) >= BATCH_RECORDS or self.size >= BATCH_BYTES

    @property
    def operations(self) -> list[tuple[ImportRecord, Operation]]:
        """The operations with their records."""
        return [
            (record, operation)
            for _, record, operation in self.requests
            if isinstance(operation, Operation)
        ]

    @property
    def refused(self) -> list[tuple[ImportRecord, ApiError]]:
        """The errors with their records."""
        return [
            (record, operation)
            for _, record, operation in self.requests
            if isinstance(operation, ApiError)
        ]

    def halves(self) -> tuple[ImportBatch, ImportBatch]:
        """Divide a batch of several operations."""
        half = len(self.requests) // 2
        first, second = self.requests[:half], self.requests[half:]
        middle = first[-1].number
        others = [one._replace(number=one.number - middle) for one in second]
        remaining = self.records - middle
        return ImportBatch(middle, requests=first), ImportBatch(remaining, requests=others)


class ImportRun:
    """An import that runs. The job records its progress in any case."""

    def __init__(
        self,
        tenant_id: UUID,
        name: str,
        principal: Principal,
        progress: ImportProgress,
        claimed: ClaimedImport | None = None,
    ) -> None:
        self._tenant_id = tenant_id
        self._name = name
        self._principal = principal
        self._progress = progress
        self._claimed = claimed

    async def run(
        self, records: AsyncIterator[ImportRecord], is_abandoned: Callable[[], bool]
    ) -> ImportProgress:
        """Import until the records end or the client disconnects."""
        try:
            batch = ImportBatch()
            to_skip, mode = self._progress.lines_done, self._progress.mode
            async for record in records:
                if to_skip:
                    to_skip -= 1
                    continue
                batch.add(record, mode)
                if batch.is_full and self._may_write:
                    _check(is_abandoned)
                    await self._write(batch)
                    batch = ImportBatch()
            await self._write(batch)
            self._progress.state = "done"
        except BaseException:
            self._progress.state = "interrupted"
            raise
        finally:
            await jobs.store_counts(self._tenant_id, self._progress)
        return self._progress

    @property
    def _may_write(self) -> bool:
        """Whether the file is known to be the one that an earlier call has begun to import."""
        return self._claimed is None or self._claimed.body.is_verified

    async def _write(self, batch: ImportBatch) -> None:
        """Write a batch; the updated counts are part of its transaction."""
        call = WriteCall(
            self._tenant_id,
            self._name,
            Operations([operation for _, operation in batch.operations]),
            atomic=False,
            principal=self._principal,
            also=lambda outcomes: [self._after(batch, outcomes).store_statement()],
            name=b"import %b %d" % (self._progress.id.bytes, self._progress.lines_done),
        )
        try:
            if self._claimed is None:
                written = await write(call)
            else:
                lines = self._progress.lines_done + batch.records
                written = await self._claimed.write(call, self._progress.id, lines)
        except NotOneTransaction:
            for half in batch.halves():
                await self._write(half)
            return
        self._progress = self._after(batch, written.outcomes)

    def _after(self, batch: ImportBatch, outcomes: Outcomes) -> ImportProgress:
        """Return the counts after a batch with these outcomes."""
        before = self._progress
        after = ImportProgress(
            id=before.id,
            mode=before.mode,
            lines_done=before.lines_done + batch.records,
            written=before.written,
            skipped=before.skipped,
            failed=before.failed,
            errors=list(before.errors),
        )
        failed, operations = batch.refused, batch.operations
        refusals = outcomes.refusals()
        after.written += len(outcomes) - len(refusals)
        for index, refused in refusals:
            if before.mode == "skip" and refused.code == DuplicateId.code:
                after.skipped += 1
            else:
                failed.append((operations[index][0], as_api_error(refused)))
        after.failed += len(failed)
        for record, error in sorted(failed, key=lambda item: item[0].place):
            if len(after.errors) < MAX_ERRORS:
                after.errors.append(error_of(record, error))
        return after


def _check(is_abandoned: Callable[[], bool]) -> None:
    if is_abandoned():
        raise ClientGone


def _operation(document: Value, mode: str) -> Operation:
    identity = document.get("_id")
    if mode == "upsert" and identity is not None:
        return Operation.replace(identity, document)
    return Operation.insert(document)
