"""All servers that live queries need; each may be killed and is restarted at once."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import redis
import requests

from benchmarks.support.installation import ROOT, Installation, installation, python
from benchmarks.support.native import STORAGE_NODE, built
from benchmarks.support.restartable import Restartable, running
from benchmarks.support.storage_node import RestartableNode
from foundation.json_types import JsonValue
from rillbase_server.web_process import HTTP_PROTOCOL, WEBSOCKET_PROTOCOL

_MAKE = """
import json, sys
import django; django.setup()
from documents.models import Collection, Index
from foundation.scope import scoped
from tenants.models import Quota
from tests.make import make_key, make_tenant
account = make_tenant(plan="dedicated")
names = ("requests_per_s", "requests_burst", "connections", "subscriptions")
Quota(tenant=account.tenant, limits=dict.fromkeys(names, 1000000)).save(using="staff")
with scoped(tenant_id=account.tenant.id):
    held = Collection.objects.create(name="held", backend=sys.argv[1])
    Index.objects.create(collection=held, name="shard", fields=[["shard", 1]], state="ready")
key = make_key(account.tenant, scopes=["documents:read", "documents:write"])
print(json.dumps({"key": key}))
"""
KILLS = ("node", "grid", "relay", "valkey", "web")
#: What can fail besides these if the documents are in the storage node.
NATIVE_KILLS = ("storage",)
BULK = 1_000
LOOK_S = 0.02
START_S = 60.0
#: The nodes of the default grid.
POSTGRES_NODES = 3


@dataclass(frozen=True, slots=True)
class Stack:
    """All servers of an installation, and a key of a tenant with a collection `held`."""

    installed: Installation
    web: Restartable
    relay: Restartable
    grid: Restartable
    storage: RestartableNode | None
    key: str

    def kill(self, what: str) -> None:
        """Make something fail."""
        kills: dict[str, Callable[[], None]] = {
            "node": self._kill_node,
            "grid": self.grid.kill,
            "relay": self.relay.kill,
            "valkey": self._empty_valkey,
            "web": self.web.kill,
            "storage": self._kill_storage,
        }
        kills[what]()

    def resize(self, write_partitions: int, query_partitions: int) -> None:
        """Replace the grid with one of another size, and wait until it has taken over."""
        size = ("--write-partitions", write_partitions, "--query-partitions", query_partitions)
        subprocess.run(
            [sys.executable, "manage.py", "resize_grid", *map(str, size)],
            env=self.installed.environment,
            cwd=ROOT,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def fill(self, documents: int, shards: int) -> None:
        """Insert documents, the same number into each shard."""
        numbers = range(documents)
        for begin in range(0, documents, BULK):
            several = numbers[begin : begin + BULK]
            operations: list[JsonValue] = [
                {"insert": {"_id": f"d{number}", "shard": number % shards}} for number in several
            ]
            answer = requests.post(
                f"http://127.0.0.1:{self.web.port}/v1/collections/held/documents:bulk",
                json={"operations": operations},
                headers={"Authorization": f"Bearer {self.key}"},
                timeout=120,
            )
            answer.raise_for_status()

    def valkey(self) -> redis.Redis:
        """Return a connection to the event layer."""
        return redis.Redis.from_url(self.installed.environment["REDIS_URL"])

    def _kill_node(self) -> None:
        nodes = json.loads(self.grid.fetch("/status"))["nodes"]
        # The grid of the collection is the newest one.
        label = next(label for label in reversed(nodes) if "filter" in label)
        os.kill(int(nodes[label]["pid"]), signal.SIGKILL)

    def _kill_storage(self) -> None:
        if self.storage is None:
            raise ValueError("the documents are not in the storage node")
        self.storage.kill()

    def _empty_valkey(self) -> None:
        with self.valkey() as client:
            client.flushall()


@contextmanager
def live_stack(grid: str, backend: str = "postgres") -> Iterator[Stack]:
    """Start everything, with nodes as processes or as Spark jobs."""
    with ExitStack() as opened:
        installed, storage = opened.enter_context(installation()), None
        if backend == "native":
            storage = RestartableNode(built(STORAGE_NODE), installed.directory / "storage")
            installed.environment["STORAGE_URL"] = storage.url
            storage.start()
            opened.callback(storage.stop)
        prepared = json.loads(python(installed, _MAKE, backend))
        serve = "-m uvicorn rillbase_server.asgi:application --host 127.0.0.1 --no-access-log"
        serve += f" --http {HTTP_PROTOCOL} --ws {WEBSOCKET_PROTOCOL}"
        quiet = "--log-level warning --no-proxy-headers"
        web = Restartable(installed, "web", f"{serve} {quiet}".split(), "/healthz")
        relay = Restartable(installed, "relay", ["manage.py", "relay"], "/readyz")
        kind = {"RILLBASE_GRID": grid}
        nodes = Restartable(installed, "grid", ["manage.py", "grid"], "/readyz", kind)
        opened.enter_context(running([web, relay, nodes]))
        if storage is not None:
            _until_native_nodes_run(nodes)
        yield Stack(installed, web, relay, nodes, storage, prepared["key"])


def _until_native_nodes_run(grid: Restartable) -> None:
    """Wait for the nodes of the grid that was created with the first native collection."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        nodes = json.loads(grid.fetch("/status"))["nodes"].values()
        if len(nodes) > POSTGRES_NODES and all(n.get("state") == "running" for n in nodes):
            return
        time.sleep(0.1)
    raise RuntimeError("the nodes of native collections did not start")


async def until(holds: Callable[[], bool], seconds: float) -> bool:
    """Wait until a condition holds; return whether it did."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(LOOK_S)
    return True
