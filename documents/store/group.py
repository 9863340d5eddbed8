"""Several writes of one tenant as one transaction, retried until it succeeds.

An attempt (`documents.store.attempt`) relies on recent facts. If that has changed, the group starts
over. If a unique index has a key already, the group is split, so that only the affected operation
fails. It is also split if its documents do not fit into memory together.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from uuid import UUID

import psycopg

from documents.store import facts, statements
from documents.store.access import NOTHING, access_of
from documents.store.attempt import Ended, Stale, UniqueKeyConflict, WriteAttempt
from documents.store.database import pool, scope
from documents.store.large_results import ResultDoesNotFit, in_turn
from documents.store.write import WriteCall, WriteResult
from foundation.errors import ApiError
from foundation.refusals import as_api_error
from rillbase_native import Filter, Outcomes

ATTEMPTS = 8
#: The native code's text for documents that a rule rejects.
FORBIDDEN_BY_RULE = "the collection's access rules do not allow it"
_TRY_AGAIN = frozenset({"40P01", "40001"})


class NotOneTransaction(Exception):
    """The operations of a write have to be divided, and each part has to record its progress."""


async def run_group(tenant_id: UUID, writes: Sequence[WriteCall]) -> list[Ended]:
    """Run the writes and return their outcomes, in order."""
    for attempt in range(ATTEMPTS):
        try:
            return await in_turn(tenant_id, partial(_attempt, tenant_id, writes, attempt > 0))
        except Stale:
            continue
        except UniqueKeyConflict as error:
            return await _run_separately(
                tenant_id, writes, partial(_duplicate_key, tenant_id, error)
            )
        except ResultDoesNotFit as too_large:
            return await _run_separately(tenant_id, writes, partial(_too_large, too_large))
        except psycopg.Error as error:
            if error.sqlstate not in _TRY_AGAIN or attempt == ATTEMPTS - 1:
                raise
        await asyncio.sleep(random.uniform(0, 0.002 * 2**attempt))  # noqa: S311 -- jitter
    raise psycopg.OperationalError("the collection was changed repeatedly")


async def _attempt(
    tenant_id: UUID,
    writes: Sequence[WriteCall],
    again: bool,  # noqa: FBT001 -- `partial` passes it by position
    max_held_bytes: int,
) -> list[Ended]:
    return await WriteAttempt(tenant_id, writes, again=again, max_held_bytes=max_held_bytes).run()


async def _too_large(refused: ResultDoesNotFit, _: WriteCall) -> Outcomes:
    return Outcomes.refused(refused.code, refused.detail, [])


async def _run_separately(
    tenant_id: UUID,
    writes: Sequence[WriteCall],
    refused: Callable[[WriteCall], Awaitable[Outcomes]],
) -> list[Ended]:
    """Run a group that cannot be one transaction in parts, so that only what must fail fails.

    `refused` returns the error of a write that cannot be divided.
    """
    if len(writes) > 1:
        return [(await run_group(tenant_id, [write]))[0] for write in writes]
    (write,) = writes
    if write.atomic or write.is_single:
        outcomes = await refused(write)
        if write.atomic:
            return [as_api_error(error) for _, error in outcomes.refusals()]
        return await _conclude(tenant_id, write, outcomes)
    if write.record is not None:
        raise NotOneTransaction
    parts: list[Outcomes] = []
    for half in write.halves():
        (part,) = await run_group(tenant_id, [half])
        if isinstance(part, ApiError):
            return [part]
        parts.append(part.outcomes)
    return await _conclude(tenant_id, write, Outcomes(*parts))


async def _conclude(tenant_id: UUID, write: WriteCall, ended: Outcomes) -> list[Ended]:
    """Record what accompanies a write whose operations became several transactions."""
    answer = write.answer(ended) if write.answer else None
    also, record = write.also, write.record
    if write.claim is not None or also is not None:
        last = WriteCall(
            tenant_id,
            claim=write.claim,
            answer=None if answer is None else lambda _: answer,
            record=None if record is None else lambda _: record(ended),
            after=write.after,
            also=None if also is None else lambda _: also(ended),
        )
        (concluded,) = await run_group(tenant_id, [last])
        if isinstance(concluded, ApiError) or concluded.answer is not answer:
            return [concluded]
    return [WriteResult(ended, answer)]


async def _duplicate_key(
    tenant_id: UUID, conflict: UniqueKeyConflict, write: WriteCall
) -> Outcomes:
    """Name the indexes, as far as the conflicting keys still exist.

    A caller who may not read a conflicting document learns only that a rule rejects the write: for
    that caller it does not exist.
    """
    rules = await _read_rules(tenant_id, write)
    async with pool().session() as session:
        _, conflicts = await session.run(
            [scope(tenant_id), statements.conflicting_entries(conflict.places)]
        )
        for row in range(conflicts.rows):
            rule = rules.get(conflicts.bytes(row, 1))
            if rule is None:
                continue
            # Read one at a time, because they may be large.
            conflicting = statements.body(conflicts.bytes(row, 1), conflicts.bytes(row, 2))
            _, result = await session.run([scope(tenant_id), conflicting])
            body = result.raw(0, 0) if result.rows else None
            if not (body and rule.matches(body, int(time.time() * 1000))):
                return Outcomes.refused("forbidden_by_rule", FORBIDDEN_BY_RULE, [])
    names = sorted({conflicts.text(row, 0) for row in range(conflicts.rows)})
    return Outcomes.refused(
        "duplicate_key",
        "Another document has the same values in a unique index.",
        [("", f"index {name!r}") for name in names],
    )


async def _read_rules(tenant_id: UUID, write: WriteCall) -> dict[bytes, Filter]:
    """Return the caller's read filters by collection id, for collections with access rules."""
    rules: dict[bytes, Filter] = {}
    if write.principal is None:
        return rules
    for name in write.collections().values():
        collection = await facts.find(tenant_id, name)
        access = access_of(collection, write.principal)
        if access is not None:
            rules[collection.raw] = access.filters.get("read", NOTHING)
    return rules
