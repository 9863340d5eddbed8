"""Records as writes: a thousand per transaction, each record independent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from uuid import UUID
from weakref import WeakValueDictionary

from data_plane.http.body import ClientGone
from documents.store.write import WriteCall
from documents.store.writer import write
from documents.transfer import jobs
from documents.transfer.import_record import ImportRecord
from documents.transfer.jobs import MAX_ERRORS, ImportProgress
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


@dataclass(slots=True)
class ImportBatch:
    """Records that are written together; those that cannot be parsed are already errors."""

    records: int = 0
    size: int = 0
    operations: list[Operation] = field(default_factory=list)
    #: The line of each operation.
    numbers: list[int] = field(default_factory=list)
    refused: list[tuple[int, ApiError]] = field(default_factory=list)

    def add(self, record: ImportRecord, mode: str) -> None:
        self.records += 1
        # A blank line counts too: a stream of nothing else must not grow a batch forever.
        self.size += record.size + 1
        try:
            document = record.read()
            if document is None:
                return
            self.operations.append(_operation(document, mode))
            self.numbers.append(record.line)
        except QueryError as error:
            self.refused.append((record.line, as_api_error(error)))
        except ApiError as error:
            self.refused.append((record.line, error))

    @property
    def is_full(self) -> bool:
        requests = len(self.operations) + len(self.refused)
        return requests >= BATCH_RECORDS or self.size >= BATCH_BYTES


async def run(
    tenant_id: UUID,
    name: str,
    progress: ImportProgress,
    records: AsyncIterator[ImportRecord],
    principal: Principal,
    is_abandoned: Callable[[], bool],
) -> ImportProgress:
    """Import until the records end or the client disconnects. The job records the progress in any
    case.
    """
    try:
        batch = ImportBatch()
        to_skip = progress.lines_done
        async for record in records:
            if to_skip:
                to_skip -= 1
                continue
            batch.add(record, progress.mode)
            if batch.is_full:
                _check(is_abandoned)
                progress = await _write(tenant_id, name, progress, batch, principal)
                batch = ImportBatch()
        progress = await _write(tenant_id, name, progress, batch, principal)
        progress.state = "done"
    except BaseException:
        progress.state = "interrupted"
        raise
    finally:
        await jobs.store_counts(tenant_id, progress)
    return progress


def _check(is_abandoned: Callable[[], bool]) -> None:
    if is_abandoned():
        raise ClientGone


async def _write(
    tenant_id: UUID, name: str, progress: ImportProgress, batch: ImportBatch, principal: Principal
) -> ImportProgress:
    """Write a batch; the updated counts are part of its transaction."""
    call = WriteCall(
        tenant_id,
        name,
        Operations(batch.operations),
        atomic=False,
        principal=principal,
        also=lambda outcomes: [_updated_progress(progress, batch, outcomes).store_statement()],
    )
    written = await write(call)
    return _updated_progress(progress, batch, written.outcomes)


def _updated_progress(
    progress: ImportProgress, batch: ImportBatch, outcomes: Outcomes
) -> ImportProgress:
    """Return the counts after a batch with these outcomes."""
    after = ImportProgress(
        id=progress.id,
        mode=progress.mode,
        lines_done=progress.lines_done + batch.records,
        written=progress.written,
        skipped=progress.skipped,
        failed=progress.failed,
        errors=list(progress.errors),
    )
    failed = list(batch.refused)
    refusals = outcomes.refusals()
    after.written += len(outcomes) - len(refusals)
    for index, refused in refusals:
        if progress.mode == "skip" and refused.code == DuplicateId.code:
            after.skipped += 1
        else:
            failed.append((batch.numbers[index], as_api_error(refused)))
    after.failed += len(failed)
    for number, error in sorted(failed, key=lambda item: item[0]):
        if len(after.errors) < MAX_ERRORS:
            after.errors.append(jobs.error_of(number, error))
    return after


def _operation(document: Value, mode: str) -> Operation:
    identity = document.get("_id")
    if mode == "upsert" and identity is not None:
        return Operation.replace(identity, document)
    return Operation.insert(document)
