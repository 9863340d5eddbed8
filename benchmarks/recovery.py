"""How long after a failure everybody is live again, with nothing lost.

    python -m benchmarks.recovery [--queries 10000] [--documents 100000] [--grid processes|spark]
        [--kill node,grid,relay,valkey,web] [--writes 50] [--quick]

Every query watches its own tenth of a thousandth of the documents over WebSockets while writes go
on. Then something is killed with SIGKILL (`valkey`: emptied): a filter node (`node`), the whole
grid with Spark's driver (`grid`), the relay, Valkey's content, the app server. The benchmark starts
services again as the launcher does, at once. A failure has been mended when every watcher says
`live` and has every document that was written until then; the time is that of the last one. At the
end every watcher's rows are compared with what was written.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import redis
import requests

from benchmarks.support.installation import Installation, installation, python
from benchmarks.support.report import Report
from benchmarks.support.restartable import Restartable, running
from benchmarks.support.watchers import Tally, Watchers
from foundation.json_types import JsonValue

_MAKE = """
import json
import django; django.setup()
from documents.models import Collection, Index
from foundation.scope import scoped
from tenants.models import Quota
from tests.make import make_key, make_tenant
made = make_tenant(plan="dedicated")
names = ("requests_per_s", "requests_burst", "connections", "subscriptions")
Quota(tenant=made.tenant, limits=dict.fromkeys(names, 1000000)).save(using="staff")
with scoped(tenant_id=made.tenant.id):
    held = Collection.objects.create(name="held")
    Index.objects.create(collection=held, name="shard", fields=[["shard", 1]], state="ready")
key = make_key(made.tenant, scopes=["documents:read", "documents:write"])
print(json.dumps({"key": key}))
"""
KILLS = ("node", "grid", "relay", "valkey", "web")
BULK = 1_000
#: What a failure's mending may take before it is given up.
PATIENCE_S = 120.0
#: A failure shows within this time, or not at all: watchers are stale after two seconds.
SHOWS_S = 6.0
#: All is well when it has been so for this long.
CALM_S = 1.0
GOALS = {"node": "<= 5", "grid": "<= 40"}


@dataclass(frozen=True, slots=True)
class Knobs:
    """How much is measured."""

    queries: int
    documents: int
    writes: float
    grid: str
    kill: list[str]


@dataclass(frozen=True, slots=True)
class Stack:
    """All servers of an installation."""

    place: Installation
    web: Restartable
    relay: Restartable
    grid: Restartable
    key: str

    def kill(self, what: str) -> None:
        """Make something fail."""
        kills: dict[str, Callable[[], None]] = {
            "node": self._kill_node,
            "grid": self.grid.kill,
            "relay": self.relay.kill,
            "valkey": self._empty_valkey,
            "web": self.web.kill,
        }
        kills[what]()

    def _kill_node(self) -> None:
        nodes = json.loads(self.grid.fetch("/status"))["nodes"]
        label = next(label for label in nodes if "filter" in label)
        os.kill(int(nodes[label]["pid"]), signal.SIGKILL)

    def _empty_valkey(self) -> None:
        redis.Redis.from_url(self.place.environment["REDIS_URL"]).flushall()

    def fill(self, documents: int, shards: int) -> None:
        """Insert documents, as many into each shard."""
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


def main() -> None:
    """Measure and report."""
    knobs = _knobs()
    params: dict[str, object] = {
        "queries": knobs.queries,
        "documents": knobs.documents,
        "writes_per_s": knobs.writes,
        "grid": knobs.grid,
        "kill": knobs.kill,
    }
    report = Report("recovery", params)
    with ExitStack() as opened:
        stack = _start(opened, knobs)
        asyncio.run(_measure(report, stack, knobs))
    report.finish()


def _knobs() -> Knobs:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of queries and documents")
    parser.add_argument("--queries", type=int, help="live queries")
    parser.add_argument("--documents", type=int, help="documents of the collection")
    parser.add_argument("--writes", type=float, default=50.0, help="writes a second")
    parser.add_argument("--grid", choices=["processes", "spark"], default="processes")
    parser.add_argument("--kill", default=",".join(KILLS), help="what fails, one after the other")
    given = parser.parse_args()
    kill = given.kill.split(",")
    if unknown := set(kill) - set(KILLS):
        parser.error(f"not known: {', '.join(unknown)}")
    return Knobs(
        queries=given.queries or (1_000 if given.quick else 10_000),
        documents=given.documents or (10_000 if given.quick else 100_000),
        writes=given.writes,
        grid=given.grid,
        kill=kill,
    )


def _start(opened: ExitStack, knobs: Knobs) -> Stack:
    place = opened.enter_context(installation())
    made = json.loads(python(place, _MAKE))
    serve = "-m uvicorn rillbase_server.asgi:application --host 127.0.0.1 --no-access-log"
    quiet = "--log-level warning --no-proxy-headers"
    web = Restartable(place, "web", f"{serve} {quiet}".split(), "/healthz")
    relay = Restartable(place, "relay", ["manage.py", "relay"], "/readyz")
    kind = {"RILLBASE_GRID": knobs.grid}
    grid = Restartable(place, "grid", ["manage.py", "grid"], "/readyz", kind)
    opened.enter_context(running([web, relay, grid]))
    return Stack(place, web, relay, grid, made["key"])


async def _measure(report: Report, stack: Stack, knobs: Knobs) -> None:
    await asyncio.to_thread(stack.fill, knobs.documents, knobs.queries)
    watchers = Watchers(stack.web.port, stack.key, "held", knobs.queries)
    began = time.monotonic()
    await watchers.start()
    try:
        if not await _until(lambda: watchers.whole, PATIENCE_S):
            raise RuntimeError("the queries did not become live")
        rate = knobs.queries / (time.monotonic() - began)
        report.add("subscribed_per_s", rate, "/s", "queries begun at first")
        watchers.write(knobs.writes)
        for what in knobs.kill:
            print(f"{what} …", file=sys.stderr)
            await _fail(report, stack, watchers, what)
        written = await watchers.stop_writing()
        await _until(lambda: watchers.whole, PATIENCE_S)
        report.add("written", written, "", "documents written meanwhile")
        report.add("lost", watchers.missing, "", "of them unknown to their watchers", "<= 0")
    finally:
        await watchers.close()


async def _fail(report: Report, stack: Stack, watchers: Watchers, what: str) -> None:
    """Let one thing fail and wait until that is mended."""
    watchers.tally = Tally()
    began = time.monotonic()
    await asyncio.to_thread(stack.kill, what)
    shown = await _until(lambda: watchers.stale > 0, SHOWS_S)
    mended_s = await _until_calm(watchers)
    took = PATIENCE_S if mended_s is None else mended_s - began
    tally = watchers.tally
    what_is = f"from the kill of {what} until all were live and had everything"
    if not shown:
        took, what_is = 0.0, f"nobody was ever stale after the kill of {what}"
    print(f"{what}: {took:.1f} s", file=sys.stderr)
    report.add(f"{what}_s", took, "s", what_is, GOALS.get(what, ""))
    report.add(f"{what}_mended", float(mended_s is not None), "", "1: it was", ">= 1")
    report.add(f"{what}_stale", tally.stale, "", "times that a watcher was told to be stale")
    report.add(f"{what}_resets", tally.resets, "", "watchers that began anew")
    report.add(f"{what}_reconnects", tally.reconnects, "", "connections that broke")


async def _until_calm(watchers: Watchers) -> float | None:
    """Wait until nothing has been amiss for a while; return since when, if it came to that."""
    end = time.monotonic() + PATIENCE_S
    since: float | None = None
    while time.monotonic() < end:
        now = time.monotonic()
        # A write that was acknowledged just now may still be on its way.
        well = not watchers.stale and watchers.missing <= 1 + len(watchers.watched) // 1_000
        since = (since or now) if well else None
        if since is not None and now - since >= CALM_S:
            return since
        await asyncio.sleep(0.05)
    return None


async def _until(holds: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.05)
    return True


if __name__ == "__main__":
    main()
