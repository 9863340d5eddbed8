"""The supervisor, with nodes in processes and a real database that lists the epochs."""

from __future__ import annotations

import asyncio
import json
import os
import signal

import psutil
import psycopg
import pytest
import redis
from prometheus_client import REGISTRY

from documents.outbox.loop import RelayLoop
from foundation.asgi import Receive, Scope, Send
from foundation.environment import environment
from realtime.clusters import grids
from realtime.events.layer import lease_key
from realtime.grid import succession, supervisor
from realtime.grid.keeper import LauncherLost
from realtime.grid.layout import NodeSpec, read_grids
from realtime.grid.processes import ProcessLauncher
from realtime.grid.supervisor import GridSupervisor
from rillbase_server.dependencies import GridProbe
from rillbase_server.health import Dependency, HealthEndpoints
from tests.asgi_driver import ask, http_scope
from tests.background_service import running_service
from tests.realtime.fake_grid import FAR_AWAY_MS
from tests.waiting import TIMEOUT_S, until

FIRST = "1:filter:0:0"


class Idle:
    """A task that never ends by itself."""

    holder = "nobody"

    def ended(self) -> None:
        return None

    def stop(self) -> None:
        """Do nothing."""

    def kill(self) -> None:
        """Do nothing."""


class RecordingLauncher:
    """A launcher that only records its calls, and may be lost."""

    def __init__(self) -> None:
        self.slots = 0
        self.started: list[NodeSpec] = []
        self.failure: str | None = None

    def open(self, slots: int) -> int:
        self.slots = slots
        return slots

    def room(self) -> int:
        return self.slots

    def start(self, node: NodeSpec) -> Idle:
        self.started.append(node)
        return Idle()

    def lost(self) -> str | None:
        return self.failure

    def close(self) -> None:
        """Do nothing."""


def reports(supervisor: GridSupervisor) -> dict[str, dict[str, object]]:
    result = supervisor.status()["nodes"]
    assert isinstance(result, dict)
    return result


async def readyz() -> tuple[str, str, dict[str, object]]:
    """The readiness of an app server and of the grid, and the grid's figures."""
    probe = GridProbe()
    grid = Dependency("grid", probe.check, required=False, figures=probe.figures)
    health = HealthEndpoints(nobody, environment(), [grid])
    answer = await ask(health, http_scope("GET", "/readyz", {}))
    assert answer.status == 200
    content = json.loads(answer.body)
    report = content["dependencies"]["grid"]
    figures = {name: report[name] for name in ("nodes", "watching", "stale_query_partitions")}
    return content["status"], report["state"], figures


async def nobody(_scope: Scope, _receive: Receive, _send: Send) -> None:
    """Answer nothing else."""


async def test_a_killed_node_is_restarted(relay: RelayLoop) -> None:
    async with running_service(GridSupervisor(ProcessLauncher())) as supervisor:
        await until(lambda: supervisor.ready, "all nodes to watch")
        before = reports(supervisor)[FIRST]
        os.kill(int(str(before["pid"])), signal.SIGKILL)
        await until(
            lambda: supervisor.ready and reports(supervisor)[FIRST].get("token") != before["token"],
            "the node to be back",
        )
        restarts = REGISTRY.get_sample_value("rillbase_grid_node_restarts_total", {"node": FIRST})
        assert restarts is not None
        assert restarts >= 1
        await until(
            lambda: REGISTRY.get_sample_value("rillbase_grid_node_up", {"node": FIRST}) == 1,
            "the node to be measured as up",
        )


async def test_a_hung_node_is_replaced(relay: RelayLoop) -> None:
    async with running_service(GridSupervisor(ProcessLauncher())) as supervisor:
        await until(lambda: supervisor.ready, "all nodes to watch")
        before = reports(supervisor)[FIRST]
        os.kill(int(str(before["pid"])), signal.SIGSTOP)
        await until(lambda: not supervisor.ready, "the node to be missed")
        amiss = {"nodes": 3, "watching": 2, "stale_query_partitions": [0]}
        assert supervisor.readiness() == amiss
        assert await readyz() == ("degraded", "down", amiss)
        await until(
            lambda: supervisor.ready and reports(supervisor)[FIRST].get("token") != before["token"],
            "another node in its place",
        )
        assert await readyz() == (
            "ready",
            "up",
            {"nodes": 3, "watching": 3, "stale_query_partitions": []},
        )
        assert not psutil.pid_exists(int(str(before["pid"])))
    grids.close()


async def test_every_active_grid_epoch_has_its_nodes(
    client: redis.Redis, postgres_url: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("INSERT INTO documents_gridepoch (number, write_partitions) VALUES (2, 3)")
        place = RecordingLauncher()
        try:
            async with running_service(GridSupervisor(place)):
                await until(lambda: len(place.started) >= 7, "the nodes of both epochs")
        finally:
            admin.execute("DELETE FROM documents_gridepoch WHERE number = 2")
    assert place.slots == 2 * 7 + 2
    assert {node.name for node in place.started if node.epoch == 2} == {
        "filter:0:0",
        "filter:0:1",
        "filter:0:2",
        "sort:0",
    }


async def test_the_keys_of_a_retired_grid_are_deleted(
    client: redis.Redis, postgres_url: str
) -> None:
    kept, left = "{rillbase}:events:1:1:registry:0", "{rillbase}:events:1:9:held:0:hub"
    client.hset(kept, "query", "definition")
    client.sadd(left, "query")
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(
            "INSERT INTO documents_gridepoch (number, write_partitions, retired_at) "
            "VALUES (9, 2, clock_timestamp())"
        )
        try:
            async with running_service(GridSupervisor(RecordingLauncher())):
                await until(lambda: not client.exists(left), "the retired grid's keys to go")
        finally:
            admin.execute("DELETE FROM documents_gridepoch WHERE number = 9")
    assert client.exists(kept)


async def test_the_loss_of_the_launcher_ends_the_service(client: redis.Redis) -> None:
    place = RecordingLauncher()
    service = asyncio.create_task(GridSupervisor(place).run())
    await until(lambda: len(place.started) >= 3, "the nodes")
    place.failure = "the driver is gone"
    with pytest.raises(LauncherLost):
        await asyncio.wait_for(service, TIMEOUT_S)


async def test_no_node_is_ready_without_a_lease(client: redis.Redis) -> None:
    place = RecordingLauncher()
    async with running_service(GridSupervisor(place)) as supervisor:
        await until(
            lambda: [report["state"] for report in reports(supervisor).values()] == ["absent"] * 3,
            "the nodes to be looked for",
        )
        assert not supervisor.ready


async def test_a_grid_replaces_only_those_of_its_backend(
    client: redis.Redis, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(succession, "OVERLAP_S", 0.0)
    monkeypatch.setattr(supervisor, "REFRESH_S", 0.2)
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(
            "INSERT INTO documents_gridepoch (number, write_partitions, backend) "
            "VALUES (21, 1, 'postgres'), (22, 1, 'native'), (23, 2, 'native')"
        )
        try:
            for node in (node for grid in await read_grids() for node in grid.nodes()):
                key = lease_key(node.prefix, node.epoch, node.name)
                client.hset(
                    key,
                    mapping={
                        "holder": "a process",
                        "token": 1,
                        "until": FAR_AWAY_MS,
                        "report": '{"state": "running"}',
                    },
                )
            async with running_service(GridSupervisor(RecordingLauncher())):
                await until(
                    lambda: active_grids(admin) == {21, 23}, "the newest grid of each backend"
                )
        finally:
            admin.execute("DELETE FROM documents_gridepoch WHERE number IN (21, 22, 23)")
            admin.execute("UPDATE documents_gridepoch SET retired_at = NULL WHERE number = 1")


def active_grids(admin: psycopg.Connection[tuple[object, ...]]) -> set[object]:
    rows = admin.execute(
        "SELECT number FROM documents_gridepoch WHERE retired_at IS NULL AND tenant_id IS NULL"
    )
    return {number for (number,) in rows}
