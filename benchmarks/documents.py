"""Documents: writes, reads and queries through the full stack, compared with raw psycopg.

    python -m benchmarks.documents [--quick] [--beside DIR]

Everything runs on this machine: one web process, PostgreSQL with synchronous commit, Valkey, and
the load generator as a separate process. The peer only runs the same INSERT with an outbox row,
over the same number of connections. `indexed` and `sorted` are queries of a collection that was
filled beforehand.

`--beside DIR` compares with another checkout of the repository at an earlier commit, which has to
be set up: rounds of both alternate (benchmarks/support/beside.py).
"""

from __future__ import annotations

import argparse
import json
import random
import string
import time
from collections.abc import Callable
from dataclasses import dataclass

import requests

from benchmarks.peers import raw_psycopg
from benchmarks.support import beside, load, servers
from benchmarks.support.installation import Installation, Web
from benchmarks.support.report import Report, median, percentile

BULK = 1_000
LOADERS = 2


@dataclass(frozen=True, slots=True)
class Knobs:
    """The extent of the measurement."""

    seconds: float
    rounds: int
    documents: int
    pipelined: int


def main() -> None:
    """Measure and report."""
    if beside.compared("documents"):
        return
    knobs = _knobs()
    report = Report(
        "documents",
        {
            "seconds": knobs.seconds,
            "rounds": knobs.rounds,
            "documents": knobs.documents,
            "pipelined": knobs.pipelined,
        },
    )
    with servers.running() as found:
        caller = Caller(found.web, found.key)
        _measure_bulk(report, found.place, caller, knobs)
        _measure_single(report, found.place, caller, knobs)
        _measure_reads(report, caller, knobs)
        _measure_queries(report, caller, knobs)
    report.finish()


def _knobs() -> Knobs:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[beside.OPTIONS],
    )
    parser.add_argument("--quick", action="store_true", help="finish in about a minute")
    parser.add_argument("--seconds", type=float, help="length of one round of load")
    parser.add_argument("--rounds", type=int, help="interleaved rounds of each")
    parser.add_argument("--documents", type=int, help="size of the collection that is queried")
    parser.add_argument("--pipelined", type=int, default=64, help="writes outstanding at once")
    given = parser.parse_args()
    return Knobs(
        seconds=given.seconds or (2.0 if given.quick else 8.0),
        rounds=given.rounds or (3 if given.quick else 5),
        documents=given.documents or (50_000 if given.quick else 1_000_000),
        pipelined=given.pipelined,
    )


@dataclass(frozen=True, slots=True)
class Caller:
    """The server as seen with one key."""

    server: Web
    key: str

    def target(
        self, path: str, *, body: bytes = b"", status: int = 200, expect: str = ""
    ) -> load.Target:
        return load.Target(
            "127.0.0.1",
            self.server.port,
            f"/v1/collections/{path}",
            (("Authorization", f"Bearer {self.key}"),),
            method="POST" if body else "GET",
            body=body,
            status=status,
            expect=expect,
        )

    def post(self, path: str, body: bytes) -> requests.Response:
        answer = requests.post(
            f"http://127.0.0.1:{self.server.port}/v1/collections/{path}",
            data=body,
            headers={
                "Authorization": f"Bearer {self.key}",
                "Content-Type": "application/json",
            },
            timeout=120,
        )
        answer.raise_for_status()
        return answer


def _document(chance: random.Random) -> dict[str, object]:
    """The paper's shape: five strings of ten characters, five integers."""
    letters = string.ascii_lowercase
    strings = {f"s{n}": "".join(chance.choices(letters, k=10)) for n in range(5)}
    integers = {f"i{n}": chance.randrange(1_000_000) for n in range(3)}
    return {
        **strings,
        **integers,
        "group": chance.randrange(50_000),
        "random": chance.randrange(1_000_000_000),
    }


def _bulk_body(chance: random.Random) -> bytes:
    operations = [{"insert": _document(chance)} for _ in range(BULK)]
    return json.dumps({"operations": operations}).encode()


def _measure_bulk(report: Report, place: Installation, caller: Caller, knobs: Knobs) -> None:
    body = _bulk_body(random.Random(1))
    target = caller.target("plain/documents:bulk", body=body, expect='"version":1')
    load.run(target, connections=LOADERS, seconds=1)
    ours, peers = [], []
    for _ in range(knobs.rounds):
        outcome = load.run(target, connections=LOADERS, seconds=knobs.seconds)
        ours.append(outcome.rate_per_s * BULK)
        peers.append(raw_psycopg.bulk(place.environment, BULK, LOADERS, knobs.seconds))
    report.add(
        "bulk_per_s", median(ours), "/s", f"documents inserted in batches of {BULK}", ">= 15000"
    )
    report.add("bulk_raw_per_s", median(peers), "/s", "raw psycopg, the same batches")
    ratio = median([a / b for a, b in zip(ours, peers, strict=True)])
    report.add("bulk_ratio", ratio, "x", "ours ÷ raw psycopg", ">= 0.6")


def _measure_single(report: Report, place: Installation, caller: Caller, knobs: Knobs) -> None:
    body = json.dumps(_document(random.Random(2))).encode()
    target = caller.target("plain/documents", body=body, status=201, expect='"version":1')
    load.run(target, connections=8, seconds=1)
    few = [load.run(target, connections=8, seconds=knobs.seconds) for _ in range(knobs.rounds)]
    latencies = [ms for outcome in few for ms in outcome.latencies_ms]
    report.add(
        "write_per_s",
        median([outcome.rate_per_s for outcome in few]),
        "/s",
        "single inserts over REST, 8 connections",
        ">= 400",
    )
    report.add("write_p50_ms", percentile(latencies, 0.5), "ms", "their latency, median")
    report.add("write_p99_ms", percentile(latencies, 0.99), "ms", "99th percentile")
    ours, peers, cpu = [], [], []
    for _ in range(knobs.rounds):
        before = caller.server.cpu_s()
        outcome = load.run(target, connections=knobs.pipelined, seconds=knobs.seconds)
        cpu.append((caller.server.cpu_s() - before) / outcome.requests * 1000)
        ours.append(outcome.rate_per_s)
        peers.append(raw_psycopg.single(place.environment, knobs.pipelined, knobs.seconds))
    report.add(
        "pipelined_per_s",
        median(ours),
        "/s",
        f"single inserts, {knobs.pipelined} outstanding",
        ">= 3000",
    )
    report.add("pipelined_cpu_ms", median(cpu), "ms", "CPU time of the web process for each")
    report.add("single_raw_per_s", median(peers), "/s", "raw psycopg, as many connections")
    ratio = median([a / b for a, b in zip(ours, peers, strict=True)])
    report.add("pipelined_ratio", ratio, "x", "ours ÷ raw psycopg", ">= 0.4")


def _measure_reads(report: Report, caller: Caller, knobs: Knobs) -> None:
    made = caller.post("plain/documents", json.dumps(_document(random.Random(3))).encode()).json()
    identity = made["id"]["$oid"]
    target = caller.target(f"plain/documents/{identity}", expect=identity)
    load.run(target, connections=8, seconds=1)
    rounds = []
    for _ in range(knobs.rounds):
        before = caller.server.cpu_s()
        outcome = load.run(target, connections=8, seconds=knobs.seconds)
        rounds.append((outcome, (caller.server.cpu_s() - before) / outcome.requests * 1000))
    latencies = [ms for outcome, _ in rounds for ms in outcome.latencies_ms]
    rate = median([outcome.rate_per_s for outcome, _ in rounds])
    report.add("read_per_s", rate, "/s", "reads of one document over REST", ">= 700")
    report.add("read_p50_ms", percentile(latencies, 0.5), "ms", "their latency, median")
    report.add("read_p99_ms", percentile(latencies, 0.99), "ms", "99th percentile")
    report.add("read_cpu_ms", median([cpu for _, cpu in rounds]), "ms", "CPU of the web process")


def _measure_queries(report: Report, caller: Caller, knobs: Knobs) -> None:
    chance = random.Random(4)
    begin = time.perf_counter()
    for _ in range(knobs.documents // BULK):
        caller.post("filled/documents:bulk", _bulk_body(chance))
    seconds = time.perf_counter() - begin
    report.add(
        "fill_per_s", knobs.documents / seconds, "/s", "inserts with two indexes, one caller"
    )
    width = 20 * 1_000_000_000 // knobs.documents
    asked: dict[str, Callable[[], dict[str, object]]] = {
        "indexed": lambda: {
            "filter": {
                "random": {"$gte": (low := chance.randrange(900_000_000)), "$lt": low + width}
            }
        },
        "sorted": lambda: {"sort": [["random", 1]], "limit": 20},
        "sorted_group": lambda: {
            "filter": {"group": chance.randrange(50_000)},
            "sort": [["random", -1]],
            "limit": 20,
        },
    }
    for name, make in asked.items():
        times = []
        for _ in range(100):
            body = json.dumps(make()).encode()
            sent = time.perf_counter()
            caller.post("filled/query", body)
            times.append((time.perf_counter() - sent) * 1000)
        what = f"{name} query on {knobs.documents:,} documents, about 20 answers, median"
        goal = "<= 5" if name != "sorted_group" else ""
        report.add(f"{name}_ms", percentile(times, 0.5), "ms", what, goal)
        report.add(f"{name}_p99_ms", percentile(times, 0.99), "ms", "99th percentile")


if __name__ == "__main__":
    main()
