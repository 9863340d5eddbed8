"""Several writes of one tenant as one transaction.

Two round trips. The first locks: the callers' idempotency keys, the collections, the documents'
rows in the order of their keys. Then everything is decided in memory (`documents.store.staging`):
a write that is refused leaves nothing behind and does not disturb the others. The second round
trip writes documents, index entries, outbox rows and idempotency records, and commits.

What the group took for granted is checked where it counts: the collection's definition under its
lock, an absent document by the insert itself. Where something has changed, it starts over.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from uuid import UUID

import psycopg

from documents.outbox import publisher
from documents.outbox.images import AfterImage, CommittedWrites
from documents.store import claims, facts, locks, statements
from documents.store.access import access_of
from documents.store.claims import Claim
from documents.store.database import begin, commit, pool, scope
from documents.store.facts import CollectionFacts
from documents.store.staging import Entry, Item, Outcome, Place, Row, Stage, Staged, entries_of
from documents.store.write import Write, Written
from foundation.errors import ApiError, DuplicateKey, FieldProblem, NotFound
from foundation.http import Answer
from foundation.postgres import Result, Session
from foundation.postgres.session import ROLLBACK, Step

ATTEMPTS = 8
#: Batches beyond this size are not marked as one for subscribers.
MAX_MARKED_BATCH = 500
_TRY_AGAIN = frozenset({"40P01", "40001"})
_ENFORCED = "documents_indexentry_unique"

Ended = Written | ApiError


class Stale(Exception):
    """A collection is no longer as it was known, or a document not as absent as it was found."""


class Taken(Exception):
    """A unique index has one of the keys already."""

    def __init__(self, added: list[tuple[Entry, bytes]]) -> None:
        super().__init__()
        self.added = added


@dataclass(slots=True)
class _Planned:
    """A write that takes part, with its collections looked up."""

    position: int
    write: Write
    items: list[Item]


async def run_group(tenant_id: UUID, writes: Sequence[Write]) -> list[Ended]:
    """Run the writes and return how each ended, in their order."""
    for attempt in range(ATTEMPTS):
        try:
            return await _Attempt(tenant_id, writes, fresh=attempt > 0).run()
        except Stale:
            continue
        except Taken as taken:
            return await _one_by_one(tenant_id, writes, taken)
        except psycopg.Error as failed:
            if failed.sqlstate not in _TRY_AGAIN or attempt == ATTEMPTS - 1:
                raise
        await asyncio.sleep(random.uniform(0, 0.002 * 2**attempt))  # noqa: S311 -- jitter
    raise psycopg.OperationalError("the collection kept changing")


async def _one_by_one(tenant_id: UUID, writes: Sequence[Write], taken: Taken) -> list[Ended]:
    """Find out which write meets a taken key, so that it alone fails."""
    if len(writes) > 1:
        return [(await run_group(tenant_id, [write]))[0] for write in writes]
    (write,) = writes
    if write.atomic:
        return [await _duplicate_key(tenant_id, taken)]
    ended: list[Outcome] = []
    if write.is_single:
        ended.append(await _duplicate_key(tenant_id, taken))
    else:
        for half in write.halves():
            (part,) = await run_group(tenant_id, [half])
            if isinstance(part, ApiError):
                return [part]
            ended += part.outcomes
    return await _concluded(tenant_id, write, ended)


async def _concluded(tenant_id: UUID, write: Write, ended: list[Outcome]) -> list[Ended]:
    """Write down what goes with a write whose operations became several transactions."""
    answer = write.answer(ended) if write.answer else None
    also = write.also
    if write.claim is not None or also is not None:
        last = Write(
            tenant_id,
            [],
            claim=write.claim,
            answer=None if answer is None else lambda _: answer,
            also=None if also is None else lambda _: also(ended),
        )
        await run_group(tenant_id, [last])
    return [Written(ended, answer)]


async def _duplicate_key(tenant_id: UUID, taken: Taken) -> DuplicateKey:
    """Name the indexes concerned, as far as the keys in the way are still there."""
    async with pool().session() as session:
        _, found = await session.run([scope(tenant_id), statements.taken(taken.added)])
    names = sorted({found.text(row, 0) for row in range(found.rows)})
    return DuplicateKey(
        "Another document has the same values in a unique index.",
        errors=[FieldProblem("", "duplicate_key", f"index {name!r}") for name in names],
    )


class _Attempt:
    """One try at a group."""

    def __init__(self, tenant_id: UUID, writes: Sequence[Write], *, fresh: bool) -> None:
        self._tenant_id = tenant_id
        self._writes = writes
        self._fresh = fresh
        self._ended: list[Ended | None] = [None] * len(writes)
        self._collections: dict[bytes, CollectionFacts] = {}

    async def run(self) -> list[Ended]:
        planned = [
            found
            for position, write in enumerate(self._writes)
            if (found := await self._plan(position, write)) is not None
        ]
        if planned:
            async with pool().session() as session:
                await self._run_in(session, planned)
        return [ended for ended in self._ended if ended is not None]

    async def _plan(self, position: int, write: Write) -> _Planned | None:
        names = {line.collection for line in write.lines}
        try:
            known = {
                name: await facts.find(self._tenant_id, name, fresh=self._fresh)
                for name in sorted(names)
            }
        except NotFound as missing:
            self._ended[position] = missing
            return None
        self._collections.update((found.raw, found) for found in known.values())
        principal = write.principal
        access = {
            name: None if principal is None else access_of(found, principal)
            for name, found in known.items()
        }
        items = [
            Item(
                found := known[line.collection],
                line.operation,
                (found.raw, line.operation.key),
                access[line.collection],
                line.expected,
            )
            for line in write.lines
        ]
        return _Planned(position, write, items)

    async def _run_in(self, session: Session, planned: list[_Planned]) -> None:
        held = self._claims(planned)
        keys = self._keys(planned)
        opening = [*begin(self._tenant_id), *claims.look_up(held)]
        opening += [locks.shared(self._collections[collection].id) for collection in keys]
        for collection, wanted in keys.items():
            opening += [statements.check(collection), statements.lock_rows(collection, wanted)]
        results = await session.run(opening)
        rows, floors, now_ms = self._read(results[len(results) - 2 * len(keys) :], list(keys))
        if rows is None:
            await session.run([(ROLLBACK, ())])
            raise Stale
        settled = claims.settle(held, results[2], results[3]) if held else {}
        stage = Stage(rows, floors, now_ms)
        running = [plan for plan in planned if not self._is_settled(plan, settled)]
        outcomes = self._apply(stage, running)
        await self._finish(session, stage, rows, outcomes)

    def _claims(self, planned: list[_Planned]) -> list[Claim]:
        """Return the keys to claim. One that two writes of this group carry is the first one's."""
        held: dict[bytes, Claim] = {}
        for plan in list(planned):
            claim = plan.write.claim
            if claim is None:
                continue
            if claim.key_hash in held:
                self._ended[plan.position] = claims.in_progress()
                planned.remove(plan)
            else:
                held[claim.key_hash] = claim
        return list(held.values())

    def _keys(self, planned: Sequence[_Planned]) -> dict[bytes, list[bytes]]:
        """Return the keys to lock by collection, both in the order in which everybody locks."""
        places = sorted({item.place for plan in planned for item in plan.items})
        return {
            collection: [key for _, key in group]
            for collection, group in groupby(places, key=lambda place: place[0])
        }

    def _read(
        self, results: Sequence[Result], collections: Sequence[bytes]
    ) -> tuple[dict[Place, Row] | None, dict[bytes, int], int]:
        """Return the locked rows, or None when a collection is not as it was known."""
        rows: dict[Place, Row] = {}
        floors: dict[bytes, int] = {}
        now_ms = 0
        for number, collection in enumerate(collections):
            check, found = results[2 * number], results[2 * number + 1]
            if not check.rows or check.integer(0, 0) != self._collections[collection].write_version:
                return None, {}, 0
            floors[collection] = check.integer(0, 1)
            now_ms = check.time_ms(0, 3)
            for row in range(found.rows):
                rows[collection, found.bytes(row, 0)] = Row(
                    version=found.integer(row, 1),
                    body=found.raw(row, 3),
                    created_ms=found.time_ms(row, 2),
                    created_raw=found.bytes(row, 2),
                )
        return rows, floors, now_ms

    def _is_settled(self, plan: _Planned, settled: dict[bytes, Answer | ApiError]) -> bool:
        claim = plan.write.claim
        answer = settled.get(claim.key_hash) if claim is not None else None
        if isinstance(answer, ApiError):
            self._ended[plan.position] = answer
        elif answer is not None:
            self._ended[plan.position] = Written([], answer)
        return answer is not None

    def _apply(
        self, stage: Stage, running: Sequence[_Planned]
    ) -> list[tuple[_Planned, list[Outcome]]]:
        applied = []
        for plan in running:
            try:
                apply = stage.apply_atomically if plan.write.atomic else stage.apply_all
                applied.append((plan, apply(plan.items)))
            except ApiError as refused:
                self._ended[plan.position] = refused
        return applied

    async def _finish(
        self,
        session: Session,
        stage: Stage,
        rows: dict[Place, Row],
        applied: Sequence[tuple[_Planned, list[Outcome]]],
    ) -> None:
        answers = [
            (plan, outcomes, plan.write.answer(outcomes) if plan.write.answer else None)
            for plan, outcomes in applied
        ]
        recorded = claims.records(
            (plan.write.claim, answer)
            for plan, _, answer in answers
            if plan.write.claim is not None and answer is not None
        )
        hashes = self._batch_hashes(stage)
        recorded += [
            step
            for plan, outcomes, _ in answers
            if plan.write.also is not None
            for step in plan.write.also(outcomes)
        ]
        if stage.staged:
            await self._commit(session, stage, rows, hashes, recorded)
        else:
            await session.run([*recorded, commit()])
        for plan, outcomes, answer in answers:
            self._ended[plan.position] = Written(outcomes, answer)

    def _batch_hashes(self, stage: Stage) -> list[int] | None:
        """Return the keys' hashes of a batch that subscribers see as one."""
        (first, *others) = self._writes
        if others or not first.atomic or not 1 < len(stage.staged) <= MAX_MARKED_BATCH:
            return None
        return sorted({staged.key_hash for staged in stage.staged.values()})

    async def _commit(
        self,
        session: Session,
        stage: Stage,
        rows: dict[Place, Row],
        hashes: list[int] | None,
        recorded: list[Step],
    ) -> None:
        changed = sorted(stage.staged.items(), key=itemgetter(0))
        added, removed = entries_of(changed)
        steps: list[Step] = [(statements.TRANSACTION_ID, ())]
        by_collection = {
            collection: list(group)
            for collection, group in groupby(changed, key=lambda item: item[0][0])
        }
        for collection, documents in by_collection.items():
            steps += self._write(collection, documents, rows, hashes)
        if removed:
            steps.append(statements.remove_entries(removed))
        if added:
            steps.append(statements.add_entries(self._tenant_id, added))
        stamped = publisher.stamp()
        try:
            results = await session.run([*steps, *recorded, commit()])
        except psycopg.errors.UniqueViolation as violated:
            if _ENFORCED in str(violated):
                raise Taken(added) from None
            if statements.SOMEBODY_WAS_FASTER in str(violated):
                raise Stale from None
            raise
        xid = results[0].integer(0, 0)
        publisher.offer(
            stamped,
            [
                self._committed(xid, stage.now_ms, collection, documents, hashes)
                for collection, documents in by_collection.items()
            ],
        )

    def _write(
        self,
        collection: bytes,
        documents: Sequence[tuple[Place, Staged]],
        rows: dict[Place, Row],
        hashes: list[int] | None,
    ) -> list[Step]:
        fresh = [staged for place, staged in documents if place not in rows]
        locked = [staged for place, staged in documents if place in rows]
        steps = []
        if fresh:
            steps.append(statements.insert(self._tenant_id, collection, fresh))
        if locked:
            steps.append(statements.update(collection, locked))
        steps.append(
            statements.outbox(
                self._tenant_id,
                collection,
                [staged for _, staged in documents],
                self._collections[collection].rules_version,
                hashes,
            )
        )
        return steps

    def _committed(
        self,
        xid: int,
        written_ms: int,
        collection: bytes,
        documents: Sequence[tuple[Place, Staged]],
        hashes: list[int] | None,
    ) -> CommittedWrites:
        return CommittedWrites(
            xid=xid,
            tenant_id=self._tenant_id,
            collection_id=self._collections[collection].id,
            rules_version=self._collections[collection].rules_version,
            written_ms=written_ms,
            images=[
                AfterImage(
                    key=staged.key,
                    key_hash=staged.key_hash,
                    version=staged.version,
                    body=staged.body,
                    deleted_id=staged.deleted_id,
                    created_ms=staged.created_ms,
                )
                for _, staged in documents
            ],
            batch_hashes=hashes,
        )
