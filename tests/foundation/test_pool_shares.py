"""No party takes all sessions of a pool."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from types import SimpleNamespace

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foundation.postgres import PostgresSession, SessionPool, pool
from foundation.postgres.pool import MAX_IN_USE_PER_FREE

SIZE = 16


async def connect(_: str) -> SimpleNamespace:
    return SimpleNamespace(broken=False, is_idle=True, largest_sent_bytes=0, close=lambda: None)


@pytest.fixture(autouse=True)
def _no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PostgresSession, "connect", connect)
    monkeypatch.setattr(pool, "WAIT_S", 0.05)


async def take_all(sessions: SessionPool, party: str) -> list[PostgresSession]:
    """Take sessions until the next one would have to wait."""
    borrowed = []
    while True:
        try:
            borrowed.append(await sessions.take(party))
        except psycopg.OperationalError:
            return borrowed


async def test_a_party_that_is_alone_gets_three_quarters() -> None:
    assert len(await take_all(SessionPool(str, SIZE), "one")) == 12


async def test_newcomers_get_a_session_at_once() -> None:
    sessions = SessionPool(str, SIZE)
    for number in range(3):
        async with asyncio.timeout(0.01):
            await sessions.take(f"party {number}")
        await take_all(sessions, f"party {number}")


@pytest.mark.parametrize("size", [1, 2, 3])
async def test_a_small_pool_lends_its_sessions(size: int) -> None:
    sessions = SessionPool(str, size)
    assert len(await take_all(sessions, "one")) == size
    sessions.return_session(await connect(""), "one")  # type: ignore[arg-type]
    await sessions.take("two")


async def test_waiting_parties_take_turns() -> None:
    sessions = SessionPool(str, 1)
    first, order = await sessions.take("busy"), []

    async def call(party: str) -> None:
        async with sessions.session(party):
            order.append(party)

    calls = [asyncio.create_task(call(party)) for party in ["busy"] * 6 + ["calm"] * 2]
    await asyncio.sleep(0)
    sessions.return_session(first, "busy")
    await asyncio.gather(*calls)
    assert order[:4] == ["busy", "calm", "busy", "calm"]


@given(data=st.data())
def test_every_session_is_returned_whatever_is_cancelled(data: st.DataObject) -> None:
    async def history() -> None:
        sessions, in_use, waiting = SessionPool(str, 5), Counter[str](), list[asyncio.Task[None]]()
        release = asyncio.Event()

        async def call(party: str) -> None:
            async with sessions.session(party):
                in_use[party] += 1
                assert in_use[party] <= MAX_IN_USE_PER_FREE * (6 - in_use.total())
                try:
                    await release.wait()
                finally:
                    in_use[party] -= 1

        for party in data.draw(st.lists(st.sampled_from("abc"), max_size=20)):
            waiting.append(asyncio.create_task(call(party)))
            if data.draw(st.booleans()):
                await asyncio.sleep(0)
            if data.draw(st.integers(0, 3)) == 0:
                data.draw(st.sampled_from(waiting)).cancel()
        await asyncio.sleep(0)
        release.set()
        await asyncio.gather(*waiting, return_exceptions=True)
        async with AsyncExitStack() as stack:
            for number in range(5):
                await stack.enter_async_context(sessions.session(number))

    asyncio.run(history())
