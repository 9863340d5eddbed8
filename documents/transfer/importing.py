"""Lines as writes: a thousand per transaction, each line independent."""

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
from documents.transfer.jobs import MAX_ERRORS, ImportProgress
from foundation.errors import ApiError, DuplicateId, InvalidDocument
from foundation.refusals import as_api_error
from rillbase_native import Operation, Operations, Outcomes, QueryError, Value
from tenants.principals import Principal

BATCH_LINES = 1_000
#: Size of a batch of lines. It waits for its turn in memory, with several copies while it is
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
    """Lines that are written together; those that cannot be parsed are already errors."""

    first_line: int
    lines: int = 0
    size: int = 0
    operations: list[Operation] = field(default_factory=list)
    #: The line of each operation.
    numbers: list[int] = field(default_factory=list)
    refused: list[tuple[int, ApiError]] = field(default_factory=list)

    def add(self, line: bytes, mode: str) -> None:
        number = self.first_line + self.lines
        self.lines += 1
        # A blank line counts too: a stream of nothing else must not grow a batch forever.
        self.size += len(line) + 1
        if not line.strip():
            return
        try:
            self.operations.append(_operation(line, mode))
            self.numbers.append(number)
        except QueryError as error:
            self.refused.append((number, as_api_error(error)))
        except ApiError as error:
            self.refused.append((number, error))

    @property
    def is_full(self) -> bool:
        requests = len(self.operations) + len(self.refused)
        return requests >= BATCH_LINES or self.size >= BATCH_BYTES


async def run(
    tenant_id: UUID,
    name: str,
    progress: ImportProgress,
    lines: AsyncIterator[bytes],
    principal: Principal,
    is_abandoned: Callable[[], bool],
) -> ImportProgress:
    """Import until the lines end or the client disconnects. The job records the progress in any
    case.
    """
    try:
        batch = ImportBatch(progress.lines_done + 1)
        to_skip = progress.lines_done
        async for line in lines:
            if to_skip:
                to_skip -= 1
                continue
            batch.add(line, progress.mode)
            if batch.is_full:
                _check(is_abandoned)
                progress = await _write(tenant_id, name, progress, batch, principal)
                batch = ImportBatch(progress.lines_done + 1)
        progress = await _write(tenant_id, name, progress, batch, principal)
        progress.state = "done"
    except BaseException:
        progress.state = "interrupted"
        raise
    finally:
        await jobs.write_down(tenant_id, progress)
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
        also=lambda outcomes: [_after(progress, batch, outcomes).note()],
    )
    written = await write(call)
    return _after(progress, batch, written.outcomes)


def _after(progress: ImportProgress, batch: ImportBatch, outcomes: Outcomes) -> ImportProgress:
    """Return the counts after a batch with these outcomes."""
    after = ImportProgress(
        id=progress.id,
        mode=progress.mode,
        lines_done=progress.lines_done + batch.lines,
        written=progress.written,
        skipped=progress.skipped,
        failed=progress.failed,
        errors=list(progress.errors),
    )
    failed = list(batch.refused)
    refusals = outcomes.refusals()
    after.written += len(outcomes) - len(refusals)
    for place, refused in refusals:
        if progress.mode == "skip" and refused.code == DuplicateId.code:
            after.skipped += 1
        else:
            failed.append((batch.numbers[place], as_api_error(refused)))
    after.failed += len(failed)
    for number, error in sorted(failed, key=lambda item: item[0]):
        if len(after.errors) < MAX_ERRORS:
            after.errors.append(
                {
                    "line": number,
                    "code": error.code,
                    "detail": error.detail or error.title,
                    "pointer": error.errors[0].pointer if error.errors else "",
                }
            )
    return after


def _operation(line: bytes, mode: str) -> Operation:
    document = Value.parse_document(line)
    if document.kind != "object":
        raise InvalidDocument("Each line must be a document, an object.")
    identity = document.get("_id")
    if mode == "upsert" and identity is not None:
        return Operation.replace(identity, document)
    return Operation.insert(document)
