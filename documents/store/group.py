"""Several writes of one tenant as one transaction, retried until it succeeds.

An attempt (`documents.store.attempt`) relies on recent facts. If these have changed, the group
starts over. If it violates a unique index, the keys of other documents are looked up
(`documents.store.key_lookup`), and it starts over with them: then only the operations that conflict
are rejected. A group is divided if its documents do not fit into memory together.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from uuid import UUID

import psycopg

from documents.store.attempt import Stale, UniqueKeyConflict, WriteAttempt, WriteResponse
from documents.store.key_lookup import KeyLookup
from documents.store.large_results import ReadAllowance, ResultDoesNotFit, in_turn
from documents.store.write import WriteCall, WriteResult
from foundation.errors import ApiError
from rillbase_native import Outcomes

ATTEMPTS = 8
#: A further attempt is needed only if another key conflicts than those that have been looked up.
MAX_CONFLICTS = 100
_TRY_AGAIN = frozenset({"40P01", "40001"})


class NotOneTransaction(Exception):
    """The operations of a write have to be divided, and each part has to record its progress."""


async def run_group(tenant_id: UUID, writes: Sequence[WriteCall]) -> list[WriteResponse]:
    """Run the writes and return their outcomes, in order."""
    attempts, conflicts = 0, 0
    lookup: KeyLookup | None = None
    while attempts < ATTEMPTS and conflicts < MAX_CONFLICTS:
        try:
            return await in_turn(tenant_id, partial(_attempt, tenant_id, writes, attempts, lookup))
        except UniqueKeyConflict as conflict:
            conflicts += 1
            lookup = lookup or KeyLookup(tenant_id, writes)
            await lookup.add(conflict.places)
            continue
        except Stale:
            attempts += 1
            continue
        except ResultDoesNotFit as too_large:
            return await _run_separately(tenant_id, writes, too_large)
        except psycopg.Error as error:
            attempts += 1
            if error.sqlstate not in _TRY_AGAIN or attempts == ATTEMPTS:
                raise
        await asyncio.sleep(random.uniform(0, 0.001 * 2**attempts))  # noqa: S311 -- jitter
    raise psycopg.OperationalError("the collection was changed repeatedly")


async def _attempt(
    tenant_id: UUID,
    writes: Sequence[WriteCall],
    attempts: int,
    lookup: KeyLookup | None,
    allowance: ReadAllowance,
) -> list[WriteResponse]:
    is_repeated = attempts > 0 or lookup is not None
    return await WriteAttempt(
        tenant_id, writes, again=is_repeated, lookup=lookup, max_held_bytes=allowance.result_bytes
    ).run()


async def _run_separately(
    tenant_id: UUID, writes: Sequence[WriteCall], too_large: ResultDoesNotFit
) -> list[WriteResponse]:
    """Run a group that does not fit into memory in parts."""
    if len(writes) > 1:
        return [await run_alone(write) for write in writes]
    (write,) = writes
    return [await run_in_halves(write, too_large, run_alone)]


async def run_alone(write: WriteCall) -> WriteResponse:
    (response,) = await run_group(write.tenant_id, [write])
    return response


async def run_in_halves(
    write: WriteCall,
    too_large: ResultDoesNotFit,
    run: Callable[[WriteCall], Awaitable[WriteResponse]],
) -> WriteResponse:
    """Divide a write whose documents do not fit into memory, or refuse it."""
    if write.atomic:
        return too_large
    if write.is_single:
        outcomes = Outcomes.refused(too_large.code, too_large.detail, [])
        return await conclude(write, outcomes, write.step)
    if write.record is not None:
        raise NotOneTransaction
    parts: list[Outcomes] = []
    for half in write.halves():
        part = await run(half)
        if isinstance(part, ApiError):
            return part
        parts.append(part.outcomes)
    return await conclude(write, Outcomes(*parts), write.step)


async def conclude(write: WriteCall, outcomes: Outcomes, step: bytes) -> WriteResponse:
    """Record what accompanies a write whose operations were other transactions."""
    answer = write.answer(outcomes) if write.answer else None
    also, record = write.also, write.record
    if write.claim is not None or also is not None:
        last = WriteCall(
            write.tenant_id,
            claim=write.claim,
            answer=None if answer is None else lambda _: answer,
            record=None if record is None else lambda *_: record(outcomes, step),
            after=write.after,
            also=None if also is None else lambda _: also(outcomes),
        )
        concluded = await run_alone(last)
        if isinstance(concluded, ApiError) or concluded.answer is not answer:
            return concluded
    return WriteResult(outcomes, answer, step)
