"""The gate in front of the request threads: narrow, impatient, and never stuck."""

from __future__ import annotations

import asyncio

from rillbase_server.gate import Gate

LONG_S = 30.0


async def test_the_gate_admits_no_more_than_its_width() -> None:
    gate, inside, most = Gate(2, LONG_S), 0, 0

    async def visit() -> None:
        nonlocal inside, most
        await gate.enter()
        inside += 1
        most = max(most, inside)
        await asyncio.sleep(0)
        inside -= 1
        gate.leave()

    await asyncio.gather(*(visit() for _ in range(50)))
    assert most == 2


async def test_waiting_requests_are_admitted_in_order() -> None:
    gate, order = Gate(1, LONG_S), []
    await gate.enter()

    async def visit(name: int) -> None:
        await gate.enter()
        order.append(name)
        gate.leave()

    visitors = [asyncio.create_task(visit(n)) for n in range(5)]
    await asyncio.sleep(0)
    gate.leave()
    await asyncio.gather(*visitors)
    assert order == [0, 1, 2, 3, 4]


async def test_a_wait_is_limited_by_its_timeout() -> None:
    gate = Gate(1, 0.01)
    await gate.enter()
    async with asyncio.timeout(10):
        await asyncio.gather(*(gate.enter() for _ in range(8)))


async def test_the_gate_is_narrow_again_after_a_burst_of_timeouts() -> None:
    gate = Gate(1, 0.01)
    await gate.enter()
    await asyncio.gather(gate.enter(), gate.enter())
    gate.leave()
    gate.leave()
    late = asyncio.create_task(gate.enter())
    await asyncio.sleep(0)
    assert not late.done()
    gate.leave()
    await late


async def test_a_cancelled_wait_does_not_occupy_a_slot() -> None:
    gate = Gate(1, LONG_S)
    await gate.enter()
    quitter, next_one = asyncio.create_task(gate.enter()), asyncio.create_task(gate.enter())
    await asyncio.sleep(0)
    quitter.cancel()
    await asyncio.sleep(0)
    gate.leave()
    async with asyncio.timeout(10):
        await next_one
