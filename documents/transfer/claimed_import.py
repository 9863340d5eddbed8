"""An import with an idempotency key. Each batch records the progress in its transaction, and a
retry continues after the last batch. A retry must send the same file: the part that was read is
compared when it is read again, before anything is written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from uuid import UUID

from data_plane.http import CallResponse
from documents.store import claims
from documents.store.claims import RecordedCall, WriteClaim
from documents.store.write import WriteCall, WriteResult
from documents.store.writer import write
from documents.transfer import jobs
from documents.transfer.jobs import ImportProgress
from foundation.api.rendering import to_json
from foundation.errors import IdempotencyMismatch
from foundation.ids import uuid7


@dataclass(frozen=True, slots=True)
class ImportStep:
    """How far an import has got: its job, the lines that are done, and the length and the digest of
    what has been read for them. Lines that were written change it, so it identifies a transaction.
    """

    job_id: UUID
    lines: int
    size: int
    digest: str

    def recorded(self) -> bytes:
        return to_json([str(self.job_id), self.lines, self.size, self.digest])

    @classmethod
    def of_recorded(cls, recorded: bytes) -> ImportStep:
        job_id, *others = json.loads(recorded)
        return cls(UUID(job_id), *others)


class HashedBody:
    """A body whose beginning must be what an earlier call has read."""

    def __init__(self, parts: AsyncIterator[bytes], earlier: ImportStep | None) -> None:
        self._parts = parts
        self._earlier = earlier
        self._hash = hashlib.sha256()
        self.size = 0

    @property
    def is_verified(self) -> bool:
        return self._earlier is None

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    async def parts(self) -> AsyncIterator[bytes]:
        async for part in self._parts:
            self._read(part)
            yield part
        if self._earlier is not None:
            raise claims.mismatch()

    def _read(self, part: bytes) -> None:
        rest = memoryview(part)
        earlier = self._earlier
        if earlier is not None and self.size + len(part) >= earlier.size:
            length = earlier.size - self.size
            self._hash.update(rest[:length])
            if self.digest != earlier.digest:
                raise claims.mismatch()
            self._earlier, rest = None, rest[length:]
        self._hash.update(rest)
        self.size += len(part)


class ClaimedImport:
    """The idempotency key of an import. `claim_of` returns its claim for a file with a digest."""

    def __init__(
        self,
        claim_of: Callable[[str], WriteClaim],
        recorded: RecordedCall | None,
        parts: AsyncIterator[bytes],
    ) -> None:
        self._claim_of = claim_of
        #: While the whole file is not known yet.
        self._claim = claim_of("")
        self._recorded = recorded
        #: What the last transaction has recorded.
        self._after: bytes | None = None
        earlier: ImportStep | None = None
        if recorded is not None and recorded.progress is not None:
            recorded.response(self._claim)
            self._after = recorded.progress
            earlier = ImportStep.of_recorded(recorded.progress)
        self._earlier = earlier
        self.body = HashedBody(parts, earlier)

    @classmethod
    async def of(
        cls, claim_of: Callable[[str], WriteClaim], parts: AsyncIterator[bytes]
    ) -> ClaimedImport:
        return cls(claim_of, await claims.find_recorded(claim_of("")), parts)

    async def response(self, parts: AsyncIterator[bytes]) -> CallResponse | None:
        """Return the response of a call that has ended, if it had the same file."""
        if self._recorded is None or self._recorded.end is None:
            return None
        async for _ in parts:
            continue
        return self._recorded.response(self._claim_of(self.body.digest))

    async def begin(self, tenant_id: UUID, collection_id: UUID, mode: str) -> ImportProgress:
        """Create the job, or continue with the one that an earlier call has created."""
        if self._earlier is not None:
            progress = await jobs.find(tenant_id, collection_id, self._earlier.job_id)
            if progress.lines_done != self._earlier.lines:
                raise claims.in_progress()
            return progress
        progress = ImportProgress(uuid7(), mode)
        creation = jobs.creation(tenant_id, collection_id, progress)
        await self.write(WriteCall(tenant_id, also=lambda _: [creation]), progress.id, 0)
        return progress

    async def write(self, call: WriteCall, job_id: UUID, lines: int) -> WriteResult:
        """Write, and record how many lines are done then."""
        step = ImportStep(job_id, lines, self.body.size, self.body.digest).recorded()
        call.claim, call.record, call.after = self._claim, lambda *_: step, self._after
        try:
            written = await write(call)
        except IdempotencyMismatch:
            # Another call with the key has ended, and is recorded with the digest of its file.
            raise claims.in_progress() from None
        self._after = step
        return written

    async def end(self, tenant_id: UUID, response: CallResponse) -> None:
        """Record the response."""
        claim = self._claim_of(self.body.digest)
        call = WriteCall(tenant_id, claim=claim, record=lambda *_: response, after=self._after)
        await write(call)
