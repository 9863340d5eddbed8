"""Live queries of native collections, compared with those of collections in PostgreSQL."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

import redis

from benchmarks.documents import BULK, Caller, random_document
from benchmarks.support import sockets
from benchmarks.support.installation import Installation, Web, service
from benchmarks.support.report import Report, median, percentile
from benchmarks.support.sockets import Crowd

SUBSCRIBERS, WRITES_PER_S = 100, 300.0
#: Documents that the feed publishes at once.
BACKLOG = 40_000
LOOK_S = 0.01
TIMEOUT_S = 120.0
_STATE = "{rillbase}:events:1n1:state"
_STREAM = "{rillbase}:events:1n1:*:0:count"


@contextmanager
def grid(installed: Installation, storage: Mapping[str, str]) -> Iterator[None]:
    """Run the relay and the nodes, those of native collections included."""
    with ExitStack() as stack:
        stack.enter_context(service(installed, "relay", storage))
        stack.enter_context(service(installed, "grid", {"RILLBASE_GRID": "processes", **storage}))
        yield


def measure_latencies(report: Report, server: Web, key: str, rounds: int, seconds: float) -> None:
    """Measure from the start of a write to its event, for both backends in turn."""
    medians: dict[str, list[float]] = {"native": [], "postgres": []}
    slowest: dict[str, list[float]] = {"native": [], "postgres": []}
    missing = 0
    for _ in range(rounds):
        for backend, of_rounds in medians.items():
            collection = f"{backend}-live"
            crowd = Crowd(server.port, key, collection, SUBSCRIBERS, 1, WRITES_PER_S, seconds)
            result = sockets.run(crowd)
            missing += result.expected - result.delivered
            of_rounds.append(percentile(result.latencies_ms, 0.5))
            slowest[backend].append(percentile(result.latencies_ms, 0.99))
    for name, values in (("p50", medians), ("p99", slowest)):
        what = f"from the start of a write to its event, {name}"
        for backend, of_rounds in values.items():
            report.add(f"live_{name}_{backend}_ms", median(of_rounds), "ms", f"{what}, {backend}")
        pairs = zip(values["native"], values["postgres"], strict=True)
        ratio = median([native / postgres for native, postgres in pairs])
        report.add(f"live_{name}_ratio", ratio, "x", f"{name}, native ÷ postgres", "<= 1")
    report.add("live_lost", missing, "", "events that did not come", "<= 0")


def measure_feed(
    report: Report, installed: Installation, storage: Mapping[str, str], caller: Caller
) -> None:
    """Measure how fast the feed publishes what was written while it did not run."""
    with redis.Redis.from_url(installed.environment["REDIS_URL"]) as events:
        with service(installed, "relay", storage):
            _until(lambda: events.hexists(_STATE, "cursor"))
        rng = random.Random(6)
        for _ in range(BACKLOG // BULK):
            operations = [{"insert": random_document(rng)} for _ in range(BULK)]
            body = json.dumps({"operations": operations}).encode()
            caller.post("native-plain/documents:bulk", body)
        before = _published(events)
        with service(installed, "relay", storage):
            _until(lambda: _published(events) >= before + BULK)
            begun, first = time.perf_counter(), _published(events)
            _until(lambda: _published(events) >= before + BACKLOG)
            last, took_s = _published(events), time.perf_counter() - begun
    if last > before + 2 * BACKLOG:
        raise RuntimeError("the feed was too far behind and began again")
    rate = (before + BACKLOG - first) / took_s
    what = f"after-images of {BACKLOG:,} documents published by the feed"
    report.add("feed_per_s", rate, "/s", what, ">= 50000")


def _published(events: redis.Redis) -> int:
    """Return the entries that the stream of native collections has received."""
    (count,) = [int(events.hget(key, "entries") or 0) for key in events.keys(_STREAM)] or [0]
    return count


def _until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not holds():
        if time.monotonic() > deadline:
            raise RuntimeError("the feed did not publish everything")
        time.sleep(LOOK_S)
