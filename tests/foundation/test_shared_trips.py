"""Readers of one session share its round trips, and each gets what it asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import psycopg
import pytest

from documents.store.database import close_pool, pool
from foundation.postgres import Statement, StatementResult, StatementRunner
from foundation.postgres.session import Oid, Step, int8
from foundation.postgres.shared_trips import SharedTrips

_DOUBLE = Statement("SELECT 2 * $1", (Oid.INT8,))
_DIVIDE = Statement("SELECT 1 / $1", (Oid.INT8,))


class Counting:
    """A session whose round trips are counted."""

    def __init__(self, session: StatementRunner) -> None:
        self._session = session
        self.trips = 0

    async def run(self, steps: Sequence[Step]) -> list[StatementResult]:
        self.trips += 1
        return await self._session.run(steps)


@pytest.fixture
async def session() -> AsyncIterator[Counting]:
    async with pool().session() as session:
        yield Counting(session)
    await close_pool()


async def double(session: StatementRunner, number: int, times: int) -> int:
    for _ in range(times):
        (result,) = await session.run([(_DOUBLE, (int8(number),))])
        number = result.integer(0, 0)
    return number


async def test_readers_of_different_length_share_round_trips(session: Counting) -> None:
    trips = SharedTrips(session)
    readers = [lambda s, n=n: double(s, n, times=n) for n in range(1, 6)]
    assert await trips.gather(readers) == [n * 2**n for n in range(1, 6)]
    assert session.trips == 5


async def test_a_failure_of_one_reader_does_not_affect_the_others(session: Counting) -> None:
    async def fails(_: StatementRunner) -> int:
        raise ValueError("by itself")

    one, other = await SharedTrips(session).gather([fails, lambda s: double(s, 3, times=2)])
    assert isinstance(one, ValueError)
    assert other == 12


async def test_a_failed_statement_fails_all_readers_of_the_round_trip(session: Counting) -> None:
    async def divide(session: StatementRunner) -> int:
        (result,) = await session.run([(_DIVIDE, (int8(0),))])
        return result.integer(0, 0)

    outcomes = await SharedTrips(session).gather([divide, lambda s: double(s, 3, times=1)])
    assert all(isinstance(outcome, psycopg.Error) for outcome in outcomes)
