"""The limits on a tenant's open connections, over all server processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest

from connections.quotas import ConnectionUsage, Quotas
from foundation import event_server

ALLOWED = ConnectionUsage(10, 10)


class Process:
    """One server process' connections."""

    def __init__(self, name: str) -> None:
        self.open = ConnectionUsage(0, 0)
        self.quotas = Quotas(name, lambda _: self.open, list)

    async def take(self, tenant: UUID, connections: int, subscriptions: int) -> ConnectionUsage:
        self.open = ConnectionUsage(connections, subscriptions)
        return await self.quotas.with_others(tenant, ALLOWED)


@pytest.fixture
async def processes(valkey_url: str) -> AsyncIterator[tuple[Process, Process]]:
    both = Process(f"one-{uuid4().hex}"), Process(f"two-{uuid4().hex}")
    yield both
    for process in both:
        await process.quotas.stop()
    await event_server.close()


async def test_the_counts_of_all_processes_are_added_up(processes: tuple[Process, Process]) -> None:
    tenant, (one, two) = uuid4(), processes
    assert await one.take(tenant, 6, 2) == (6, 2)
    assert await two.take(tenant, 4, 8) == (10, 10)
    assert await two.take(tenant, 4, 9) == (10, 11)
    # The rejected one was not counted.
    assert await one.take(tenant, 6, 2) == (10, 10)


async def test_released_usage_is_not_counted(processes: tuple[Process, Process]) -> None:
    tenant, (one, two) = uuid4(), processes
    await one.take(tenant, 10, 0)
    one.open = ConnectionUsage(0, 0)
    one.quotas.decreased(tenant)
    async with asyncio.timeout(30):
        while await two.take(tenant, 1, 0) != (1, 0):  # noqa: ASYNC110 -- Valkey is waited for
            await asyncio.sleep(0.01)


async def test_tenants_are_counted_apart(processes: tuple[Process, Process]) -> None:
    one, two = processes
    await one.take(uuid4(), 10, 10)
    assert await two.take(uuid4(), 1, 1) == (1, 1)


async def test_without_the_event_layer_each_process_counts_separately(
    processes: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    from foundation.valkey_wire import ValkeyWire

    away = ValkeyWire("redis://127.0.0.1:1/0", connect_timeout_s=1, answer_timeout_s=1)
    monkeypatch.setattr(event_server, "wire", lambda: away)
    assert await processes[0].take(uuid4(), 3, 4) == (3, 4)
