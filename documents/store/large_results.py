"""Large and long reads take turns: the results of all callers fit into memory together, and one
tenant's reads leave connections, PostgreSQL and the event loop to the others.

Every read starts with a small allowance, and most fit into it. A read that does not is abandoned,
releases its connection, waits for a turn and starts again. No connection and no partial result is
held while waiting. While several tenants are active, a read in turn also waits between its batches
for its tenant's share of the event loop (foundation/bulk_budget.py).
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar
from uuid import UUID

from documents.store.outdated_calls import retried
from foundation import bulk_budget
from foundation.errors import QueryTooExpensive
from foundation.per_loop import PerLoop
from foundation.turns import TurnScheduler

T = TypeVar("T")

#: Bytes of its result that a read may hold without a turn, and with one.
SMALL_BYTES, LARGE_BYTES = 1024 * 1024, 64 * 1024 * 1024
#: Documents after which a read without a turn examines no further batch.
SMALL_ROWS = 500
#: A result of more bytes is rendered in a thread.
RENDERED_BYTES = 128 * 1024
#: Reads in turn that a process runs concurrently, in total and per tenant.
AT_ONCE, OF_ONE = 3, 2

_turns = PerLoop(lambda: TurnScheduler(AT_ONCE, OF_ONE, bulk_budget.tenants))


@dataclass(frozen=True, slots=True)
class ReadAllowance:
    """What a read may do without a turn, or with one."""

    result_bytes: int
    rows: float
    has_turn: bool

    def check(self, result_bytes: int) -> None:
        """Raise `LargeResult` if a result of this size may not be held."""
        if result_bytes > self.result_bytes:
            raise LargeResult

    @classmethod
    def without_turn(cls) -> ReadAllowance:
        return cls(SMALL_BYTES, SMALL_ROWS, has_turn=False)

    @classmethod
    def in_turn(cls) -> ReadAllowance:
        return cls(LARGE_BYTES, math.inf, has_turn=True)


class LargeResult(Exception):
    """A read needs more than its allowance."""


class ResultDoesNotFit(QueryTooExpensive):
    """A result has more bytes than may be held even with a turn."""


async def rendered(tenant_id: UUID, render: Callable[[], T], *, size: int, rows: int = 0) -> T:
    """Return what `render` makes of a result. A large result is rendered in turn, in a thread: the
    event loop continues meanwhile.
    """
    if rows <= SMALL_ROWS and size <= RENDERED_BYTES:
        return render()

    def timed() -> tuple[T, float]:
        began_s = time.thread_time()
        return render(), time.thread_time() - began_s

    async with _turns.get().turn(tenant_id):
        result, spent_s = await asyncio.to_thread(timed)
    bulk_budget.tenants.charge(tenant_id, spent_s)
    return result


async def in_turn(tenant_id: UUID, read: Callable[[ReadAllowance], Awaitable[T]]) -> T:
    """Read a result: immediately if it is small, otherwise in turn. `read` raises `LargeResult` if
    it needs more than its allowance.
    """
    return await retried(partial(_in_turn, tenant_id, read))


async def _in_turn(tenant_id: UUID, read: Callable[[ReadAllowance], Awaitable[T]]) -> T:
    async def read_in_turn() -> T:
        return await read(ReadAllowance.in_turn())

    try:
        return await read(ReadAllowance.without_turn())
    except LargeResult:
        async with _turns.get().turn(tenant_id):
            try:
                return await bulk_budget.tenants.metered(tenant_id, read_in_turn())
            except LargeResult:
                detail = (
                    f"The query would have to read more than {LARGE_BYTES} bytes of "
                    "documents at once."
                )
                raise ResultDoesNotFit(detail) from None
