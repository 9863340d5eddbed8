"""A grid of processes on the suite's servers, and a relay that proves its streams complete."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest
import redis

from documents.outbox.feed.loop import FeedLoop
from documents.outbox.loop import RelayLoop
from foundation.environment import environment
from foundation.valkey_wire import ValkeyWire
from realtime.events.layer import NodeLease
from realtime.grid.layout import GridEpoch
from realtime.grid.processes import ProcessLauncher, ProcessTask
from tests.background_service import running_service
from tests.realtime.grid.wire import WRITE_PARTITIONS, Log
from tests.waiting import TIMEOUT_S, until

GRID = GridEpoch(1, 1, WRITE_PARTITIONS)


@pytest.fixture(autouse=True)
def only_postgresql(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no grid for the native collections of other tests."""

    async def publish_nothing(_: FeedLoop) -> None:
        return None

    monkeypatch.setattr(FeedLoop, "run", publish_nothing)
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("DELETE FROM documents_gridepoch WHERE backend = 'native'")


class RunningGrid:
    """Nodes, each in a process that may be killed."""

    def __init__(self) -> None:
        self._launcher = ProcessLauncher()
        self.tasks: dict[str, ProcessTask] = {}

    def start(self, *names: str) -> None:
        for node in GRID.nodes():
            if not names or node.name in names:
                self.tasks[node.name] = self._launcher.start(node)

    def close(self) -> None:
        self._launcher.close()

    async def read_leases(self) -> tuple[int, dict[str, NodeLease]]:
        wire = ValkeyWire(environment().events, connect_timeout_s=10, answer_timeout_s=10)
        try:
            return await GRID.layer(wire).leases([node.name for node in GRID.nodes()])
        finally:
            await wire.aclose()

    async def reports(self) -> dict[str, dict[str, object]]:
        """What those nodes say that hold a lease."""
        time_us, nodes = await self.read_leases()
        alive = {name: node for name, node in nodes.items() if node.until_ms * 1000 > time_us}
        return {name: json.loads(node.report or b"{}") for name, node in alive.items()}

    async def until_watching(self) -> None:
        async with asyncio.timeout(TIMEOUT_S):
            while True:
                reports = await self.reports()
                states = {report.get("state") for report in reports.values()}
                if len(reports) == len(GRID.nodes()) and states == {"running"}:
                    return
                await asyncio.sleep(0.02)


@pytest.fixture
def client(valkey_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(valkey_url) as client:
        client.flushdb()
        yield client


@pytest.fixture
async def relay(client: redis.Redis) -> AsyncIterator[RelayLoop]:
    async with running_service(RelayLoop()) as loop:
        await until(lambda: loop.status()["seconds_since_tick"] is not None, "the relay to lead")
        yield loop


@pytest.fixture
async def nodes(relay: RelayLoop) -> AsyncIterator[RunningGrid]:
    grid = RunningGrid()
    grid.start()
    try:
        await grid.until_watching()
        yield grid
    finally:
        await asyncio.to_thread(grid.close)


@pytest.fixture
def notifications(nodes: RunningGrid, client: redis.Redis) -> Log:
    return Log(client)
