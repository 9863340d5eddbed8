"""One attempt at a group of writes.

Usually two round trips, and more for large documents. The first locks: the callers' idempotency
keys, the collections, the rows of the documents that may be there, in the order of their keys. Then
the native code decides everything in memory: a write that is rejected has no effect and does not
affect the others. The second round trip writes documents, index entries, outbox rows and
idempotency records, and commits.

The group's assumptions are verified where they matter: the collection's definition under its lock,
an absent document by the insert itself. A document whose `_id` was generated here is assumed absent
without a read. A group of nothing else takes a single round trip: it is decided with the cached
definition, and an assertion under the lock aborts the transaction if that has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import psycopg

from data_plane.http import CallResponse
from documents.outbox import publisher
from documents.outbox.after_images import CommittedTransaction
from documents.store import bodies, claims, facts, locks, statements
from documents.store.access import READ_ONLY, may_write, write_rules
from documents.store.claims import WriteClaim
from documents.store.database import begin, clock, commit, pool
from documents.store.facts import CollectionFacts, ConcurrentDefinitionChange
from documents.store.key_lookup import KeyLookup
from documents.store.large_results import LargeResult
from documents.store.write import WriteCall, WriteResult
from foundation.errors import ApiError, CollectionReadOnly, NotFound
from foundation.postgres import PostgresSession, StatementResult
from foundation.postgres.session import ROLLBACK, Step
from foundation.refusals import as_api_error
from rillbase_native import Changes, Outcomes, Plan, QueryError
from tenants import usage

_ENFORCED = "documents_indexentry_unique"
#: A database server's time that was observed longer ago is not used for new documents.
MAX_CLOCK_AGE_S = 10.0

WriteResponse = WriteResult | ApiError
#: Key, version, creation time and body of a locked document.
Row = tuple[bytes, bytes, bytes, bytes | None]


class Stale(Exception):
    """A collection has changed since it was read, or a document assumed absent exists."""


class UniqueKeyConflict(Exception):
    """A unique index has one of the keys already. `places`: the keys that may be affected."""

    def __init__(self, places: Sequence[bytes]) -> None:
        super().__init__()
        self.places = places


@dataclass(frozen=True, slots=True)
class _PlannedWrite:
    """A write of this attempt, with its collections by the names used in its operations."""

    position: int
    write: WriteCall
    collections: dict[str, CollectionFacts]


@dataclass(frozen=True, slots=True)
class _LockedRows:
    """The rows that the first round trip read and locked, by collection."""

    rows: list[list[Row]]
    floors: list[int]
    now_ms: int


@dataclass(frozen=True, slots=True)
class _SingleTrip:
    """A transaction of a single round trip, which needs no BEGIN and no COMMIT."""

    #: What sets the tenant and locks the collections.
    opening: list[Step]
    #: The time of new documents.
    now_us: int


class WriteAttempt:
    """One attempt at a group."""

    def __init__(
        self,
        tenant_id: UUID,
        writes: Sequence[WriteCall],
        *,
        again: bool,
        lookup: KeyLookup | None,
        max_held_bytes: int,
    ) -> None:
        self._tenant_id = tenant_id
        self._max_held_bytes = max_held_bytes
        self._writes = writes
        self._again = again
        self._lookup = lookup
        self._responses: list[WriteResponse | None] = [None] * len(writes)
        #: In the order in which all writers lock them.
        self._collections: list[CollectionFacts] = []

    async def run(self) -> list[WriteResponse]:
        """Return the outcome of each write.

        Raises `LargeResult` if locked documents are too large.
        """
        planned = [
            collection
            for position, write in enumerate(self._writes)
            if (collection := await self._look_up(position, write)) is not None
        ]
        if planned:
            concerned = {
                collection.raw: collection
                for plan in planned
                for collection in plan.collections.values()
            }
            self._collections = [collection for _, collection in sorted(concerned.items())]
            async with pool().session(self._tenant_id) as session:
                await self._run_in(session, planned)
        return [response for response in self._responses if response is not None]

    async def _look_up(self, position: int, write: WriteCall) -> _PlannedWrite | None:
        try:
            known = await self._known(write, fresh=self._again)
            if not may_write(known.values(), write.source_id):
                # It may have gained or lost its source while the facts were cached.
                known = await self._known(write, fresh=True)
        except NotFound as error:
            self._responses[position] = error
            return None
        if not may_write(known.values(), write.source_id):
            self._responses[position] = CollectionReadOnly(READ_ONLY)
            return None
        if any(collection.is_native for collection in known.values()):
            # Created after a collection of the same name in PostgreSQL was deleted.
            self._responses[position] = ConcurrentDefinitionChange()
            return None
        return _PlannedWrite(position, write, known)

    async def _known(self, write: WriteCall, *, fresh: bool) -> dict[str, CollectionFacts]:
        return {
            name: await facts.find(self._tenant_id, collection, fresh=fresh)
            for name, collection in sorted(write.collections().items())
        }

    async def _run_in(self, session: PostgresSession, planned: list[_PlannedWrite]) -> None:
        held = self._claims(planned)
        plan = self._plan(planned)
        keys = [plan.keys(number, self._again) for number in range(len(self._collections))]
        needs_rows = held or self._again or not keys or any(keys)
        now_us = None if needs_rows else clock().now_us(MAX_CLOCK_AGE_S)
        if now_us is not None:
            await self._insert(session, plan, planned, now_us)
            return
        n_operations = sum(len(one.write.operations) for one in planned)
        progress = _expected_progress(planned)
        opening = self._opening(held, keys, n_operations, with_progress=bool(progress))
        results = await session.run(opening)
        locked = self._read(results, keys)
        if locked is None:
            await session.run([(ROLLBACK, ())])
            raise Stale
        await self._complete(session, locked)
        settled = claims.settle(held, results[2], results[3]) if held else {}
        if progress:
            claims.require_progress(settled, progress, results[4])
        skipped = [number for number, one in enumerate(planned) if self._is_settled(one, settled)]
        positions = [one.position for one in planned]
        owned = None if self._lookup is None else self._lookup.of_plan(self._collections, positions)
        changes = plan.apply(locked.rows, locked.floors, locked.now_ms, skipped, owned)
        await self._finish(session, changes, planned, skipped, None)

    async def _insert(
        self, session: PostgresSession, plan: Plan, planned: list[_PlannedWrite], now_us: int
    ) -> None:
        """Insert documents with generated ids, in a single round trip."""
        known = self._collections
        floors = [collection.version_floor for collection in known]
        changes = plan.apply([[] for _ in known], floors, now_us // 1000, [])
        opening = [
            locks.scoped_shared(self._tenant_id, known[0].id),
            *(locks.shared(collection.id) for collection in known[1:]),
        ]
        try:
            await self._finish(session, changes, planned, (), _SingleTrip(opening, now_us))
        except psycopg.errors.DivisionByZero:
            raise Stale from None

    def _claims(self, planned: list[_PlannedWrite]) -> list[WriteClaim]:
        """Return the keys to claim. If two writes of this group have the same key, the first one
        claims it.
        """
        held: dict[bytes, WriteClaim] = {}
        for plan in list(planned):
            claim = plan.write.claim
            if claim is None:
                continue
            if claim.key_hash in held:
                self._responses[plan.position] = claims.in_progress()
                planned.remove(plan)
            else:
                held[claim.key_hash] = claim
        return list(held.values())

    def _plan(self, planned: Sequence[_PlannedWrite]) -> Plan:
        numbers = {collection.raw: number for number, collection in enumerate(self._collections)}
        return Plan(
            [(collection.raw, collection.definition) for collection in self._collections],
            [
                (
                    one.write.operations,
                    [
                        (
                            name,
                            numbers[collection.raw],
                            write_rules(collection, one.write.principal),
                        )
                        for name, collection in one.collections.items()
                    ],
                    one.write.atomic,
                    one.write.expected,
                )
                for one in planned
            ],
        )

    def _opening(
        self,
        held: list[WriteClaim],
        keys: Sequence[bytes | None],
        n_operations: int,
        *,
        with_progress: bool,
    ) -> list[Step]:
        largest_body = bodies.largest_carried(n_operations)
        steps = begin(self._tenant_id) + claims.look_up(held, with_progress=with_progress)
        steps += [locks.shared(collection.id) for collection in self._collections]
        steps += [statements.check(collection.raw) for collection in self._collections]
        steps += [
            statements.lock_rows(collection.raw, row_keys, largest_body)
            for collection, row_keys in zip(self._collections, keys, strict=True)
            if row_keys is not None
        ]
        return steps

    def _read(
        self, results: Sequence[StatementResult], keys: Sequence[bytes | None]
    ) -> _LockedRows | None:
        """Return the locked rows, or None if a collection has changed."""
        looked = sum(row_keys is not None for row_keys in keys)
        start = len(results) - looked - len(keys)
        checks, locked = results[start : start + len(keys)], iter(results[start + len(keys) :])
        now_us = checks[0].time_us(0, 3) if keys and checks[0].rows else 0
        if now_us:
            clock().observe(now_us)
        locked_rows = _LockedRows([], [], now_us // 1000)
        for known, check, row_keys in zip(self._collections, checks, keys, strict=True):
            if not check.rows or check.integer(0, 0) != known.write_version:
                return None
            locked_rows.floors.append(check.integer(0, 1))
            locked_rows.rows.append([] if row_keys is None else _rows(next(locked)))
        return locked_rows

    async def _complete(self, session: PostgresSession, locked: _LockedRows) -> None:
        """Read the large bodies of locked rows."""
        held_bytes = sum(bodies.size_bytes(row[3] or b"") for rows in locked.rows for row in rows)
        if held_bytes > self._max_held_bytes:
            await session.run([(ROLLBACK, ())])
            raise LargeResult
        for number, collection in enumerate(self._collections):
            rows = locked.rows[number]
            if not any(bodies.omitted_size(row[3] or b"") for row in rows):
                continue
            cells = [(row[0], row[3] or b"") for row in rows]
            locked.rows[number] = [
                (*row[:3], omitted.get(row[0], row[3]))
                async for part, omitted in bodies.read_omitted(session, collection.raw, cells)
                for row in rows[part]
            ]

    def _is_settled(
        self, plan: _PlannedWrite, settled: dict[bytes, CallResponse | ApiError]
    ) -> bool:
        claim = plan.write.claim
        answer = settled.get(claim.key_hash) if claim is not None else None
        if isinstance(answer, ApiError):
            self._responses[plan.position] = answer
        elif answer is not None:
            self._responses[plan.position] = WriteResult(Outcomes(), answer)
        return answer is not None

    async def _finish(
        self,
        session: PostgresSession,
        changes: Changes,
        planned: Sequence[_PlannedWrite],
        skipped: Sequence[int],
        single: _SingleTrip | None,
    ) -> None:
        """Write everything, and only then report the outcome of each write."""
        written: list[tuple[_PlannedWrite, WriteResult]] = []
        for number, plan in enumerate(planned):
            if number in skipped:
                continue
            try:
                outcomes = changes.outcomes(number, plan.write.operations)
            except QueryError as error:
                self._responses[plan.position] = as_api_error(error)
                continue
            answer = plan.write.answer(outcomes) if plan.write.answer else None
            written.append((plan, WriteResult(outcomes, answer, plan.write.step)))
        await self._commit(session, changes, _also(written), single)
        for plan, one in written:
            self._responses[plan.position] = one

    async def _commit(
        self,
        session: PostgresSession,
        changes: Changes,
        also: list[Step],
        single: _SingleTrip | None,
    ) -> None:
        hashes = self._batch_hashes(changes)
        if single is None:
            opening, closing = list[Step](), [commit()]
            writes = self._changed(changes, hashes)
        else:
            opening, closing = single.opening, []
            writes = statements.insert_unchanged(self._collections, changes, single.now_us, hashes)
        stamped = publisher.stamp()
        try:
            recorded = statements.recorded_changes(self._collections, changes)
            results = await session.run([*opening, *writes, *recorded, *also, *closing])
        except psycopg.errors.UniqueViolation as error:
            if _ENFORCED in str(error):
                raise UniqueKeyConflict(changes.enforced() or ()) from None
            if statements.DOCUMENT_KEY_CONSTRAINT in str(error):
                raise Stale from None
            raise
        if not len(changes):
            return
        first = results[len(opening)]
        if single is not None:
            clock().observe(first.time_us(0, 1))
        rules_versions = [collection.rules_version for collection in self._collections]
        usage.count(self._tenant_id, usage.DOCUMENT_WRITES, len(changes))
        transaction = CommittedTransaction(
            first.integer(0, 0), self._tenant_id, changes, rules_versions, hashes
        )
        publisher.offer(stamped, transaction)

    def _changed(self, changes: Changes, hashes: Sequence[int] | None) -> list[Step]:
        """Write the changes of locked documents. The first statement returns the transaction's id,
        as that of `insert_unchanged` does.
        """
        if not len(changes):
            return []
        steps: list[Step] = [(statements.TRANSACTION_ID, ())]
        for number, collection in enumerate(self._collections):
            steps += statements.written(self._tenant_id, collection.raw, number, changes)
            steps += statements.announced(
                self._tenant_id, collection.raw, number, changes, collection.rules_version, hashes
            )
        return steps + statements.entries(self._tenant_id, changes)

    def _batch_hashes(self, changes: Changes) -> Sequence[int] | None:
        """Return the keys' hashes of a batch that subscribers see as one."""
        (first, *others) = self._writes
        if others or not first.atomic or len(changes) <= 1:
            return None
        return changes.covering_hashes()


def _expected_progress(planned: Sequence[_PlannedWrite]) -> dict[bytes, bytes | None]:
    """Return what must be recorded of calls that take several transactions, by their keys."""
    return {
        plan.write.claim.key_hash: plan.write.after
        for plan in planned
        if plan.write.claim is not None and plan.write.record is not None
    }


def _rows(result: StatementResult) -> list[Row]:
    read, cell = result.bytes, result.raw
    return [(read(row, 0), read(row, 1), read(row, 2), cell(row, 3)) for row in range(result.rows)]


def _also(written: Sequence[tuple[_PlannedWrite, WriteResult]]) -> list[Step]:
    """Return the further statements of the transaction."""
    recorded = [
        step
        for plan, one in written
        if plan.write.claim is not None
        for step in claims.records(
            plan.write.claim,
            plan.write.record(one.outcomes, one.step) if plan.write.record else one.answer,
            plan.write.after,
        )
    ]
    recorded += [
        step
        for plan, one in written
        if plan.write.also is not None
        for step in plan.write.also(one.outcomes)
    ]
    return recorded
