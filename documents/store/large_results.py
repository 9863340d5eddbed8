"""Reads with large results take turns, so that those of all callers fit into memory together.

Every read starts with a small allowance, and most fit into it. A read that does not is abandoned,
releases its connection, waits for a turn and starts again. No connection and no partial result is
held while waiting.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import UUID

from foundation import bulk_budget
from foundation.errors import QueryTooExpensive
from foundation.per_loop import PerLoop
from foundation.turns import TurnScheduler

T = TypeVar("T")

#: Bytes of its result that a read may hold without a turn, and with one.
SMALL_BYTES, LARGE_BYTES = 1024 * 1024, 64 * 1024 * 1024
#: Large results that a process reads concurrently, in total and per tenant.
AT_ONCE, OF_ONE = 3, 2

_turns = PerLoop(lambda: TurnScheduler(AT_ONCE, OF_ONE, bulk_budget.tenants))


class LargeResult(Exception):
    """A result has more bytes than may be held."""


class ResultDoesNotFit(QueryTooExpensive):
    """A result has more bytes than may be held even with a turn."""


async def in_turn(tenant_id: UUID, read: Callable[[int], Awaitable[T]]) -> T:
    """Read a result: immediately if it is small, otherwise in turn. `read` gets the number of bytes
    that it may hold. It raises `LargeResult` if it had to hold more.
    """
    try:
        return await read(SMALL_BYTES)
    except LargeResult:
        async with _turns.get().turn(tenant_id):
            try:
                return await read(LARGE_BYTES)
            except LargeResult:
                detail = (
                    f"The query would have to read more than {LARGE_BYTES} bytes of "
                    "documents at once."
                )
                raise ResultDoesNotFit(detail) from None
