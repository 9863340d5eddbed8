"""Documents: writes, reads and queries through the full stack, compared with raw psycopg.

    python -m benchmarks.documents [--quick] [--beside DIR] [--request-log]

Everything runs on this machine: one web process, PostgreSQL with synchronous commit, Valkey, and
the load generator as a separate process. The peer only runs the same INSERT with an outbox row,
over the same number of connections. `indexed` and `sorted` are queries of a collection that was
filled beforehand.

`--beside DIR` compares with another checkout of the repository at an earlier commit, which has to
be set up: rounds of both alternate (benchmarks/support/beside.py).

`--request-log` measures only the CPU time that the request log costs the web process: in short
rounds, which alternate between a process that records requests and one that does not, and by
itself.
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
from benchmarks.support.installation import Installation, Web, python, web
from benchmarks.support.report import Report, median, percentile

BULK = 1_000
LOADERS = 2
#: Rounds are short, and more, where a difference of a hundredth is measured.
ROUNDS_OF_LOG = 8

#: Records as many entries as one interval has room for, and writes them; prints the least CPU time
#: of an entry.
_RECORD = """
import secrets, sys, time
import django; django.setup()
from tenants.request_log.recorder import RequestEntry, RequestKind, RequestLog, route_name
log, costs = RequestLog(3600), []
names = {"collection": "plain"}
tenant = "01a21500-8e49-7f70-a52e-d6a34552d0d1"
path, actor = "/v1/collections/{collection}/documents", "api_key:" + tenant
for _ in range(int(sys.argv[1])):
    ids = [secrets.token_hex(16) for _ in range(1800)]
    begin = time.process_time()
    for request_id in ids:
        log.note(RequestEntry(tenant, RequestKind.REQUEST, "POST", route_name(path, names), 201,
            0.002, 200, 100, actor, request_id))
    assert log.flush() == len(ids)
    costs.append((time.process_time() - begin) / len(ids) * 1e6)
print(min(costs))
"""


@dataclass(frozen=True, slots=True)
class Knobs:
    """The extent of the measurement."""

    seconds: float
    rounds: int
    documents: int
    pipelined: int
    #: Measures only the request log.
    request_log: bool


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
    with servers.running() as server:
        caller = Caller(server.web, server.key)
        if knobs.request_log:
            _measure_request_log(report, server.installed, caller, knobs)
            report.finish()
            return
        _measure_bulk(report, server.installed, caller, knobs)
        _measure_single(report, server.installed, caller, knobs)
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
    parser.add_argument("--request-log", action="store_true", help="measure only the request log")
    options = parser.parse_args()
    return Knobs(
        request_log=options.request_log,
        seconds=options.seconds or (2.0 if options.quick else 8.0),
        rounds=options.rounds or (3 if options.quick else 5),
        documents=options.documents or (50_000 if options.quick else 1_000_000),
        pipelined=options.pipelined,
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


def random_document(rng: random.Random) -> dict[str, object]:
    """The paper's shape: five strings of ten characters, five integers."""
    letters = string.ascii_lowercase
    strings = {f"s{n}": "".join(rng.choices(letters, k=10)) for n in range(5)}
    integers = {f"i{n}": rng.randrange(1_000_000) for n in range(3)}
    return {
        **strings,
        **integers,
        "group": rng.randrange(50_000),
        "random": rng.randrange(1_000_000_000),
    }


def _bulk_body(rng: random.Random) -> bytes:
    operations = [{"insert": random_document(rng)} for _ in range(BULK)]
    return json.dumps({"operations": operations}).encode()


def _measure_bulk(report: Report, installed: Installation, caller: Caller, knobs: Knobs) -> None:
    body = _bulk_body(random.Random(1))
    target = caller.target("plain/documents:bulk", body=body, expect='"version":1')
    load.run(target, connections=LOADERS, seconds=1)
    ours, peers = [], []
    for _ in range(knobs.rounds):
        outcome = load.run(target, connections=LOADERS, seconds=knobs.seconds)
        ours.append(outcome.rate_per_s * BULK)
        peers.append(raw_psycopg.bulk(installed.environment, BULK, LOADERS, knobs.seconds))
    report.add(
        "bulk_per_s", median(ours), "/s", f"documents inserted in batches of {BULK}", ">= 15000"
    )
    report.add("bulk_raw_per_s", median(peers), "/s", "raw psycopg, the same batches")
    ratio = median([a / b for a, b in zip(ours, peers, strict=True)])
    report.add("bulk_ratio", ratio, "x", "ours ÷ raw psycopg", ">= 0.6")


def _measure_single(report: Report, installed: Installation, caller: Caller, knobs: Knobs) -> None:
    body = json.dumps(random_document(random.Random(2))).encode()
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
        peers.append(raw_psycopg.single(installed.environment, knobs.pipelined, knobs.seconds))
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
    created = caller.post(
        "plain/documents", json.dumps(random_document(random.Random(3))).encode()
    ).json()
    identity = created["id"]["$oid"]
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
    rng = random.Random(4)
    begin = time.perf_counter()
    for _ in range(knobs.documents // BULK):
        caller.post("filled/documents:bulk", _bulk_body(rng))
    seconds = time.perf_counter() - begin
    report.add(
        "fill_per_s", knobs.documents / seconds, "/s", "inserts with two indexes, one caller"
    )
    width = 20 * 1_000_000_000 // knobs.documents
    asked: dict[str, Callable[[], dict[str, object]]] = {
        "indexed": lambda: {
            "filter": {"random": {"$gte": (low := rng.randrange(900_000_000)), "$lt": low + width}}
        },
        "sorted": lambda: {"sort": [["random", 1]], "limit": 20},
        "sorted_group": lambda: {
            "filter": {"group": rng.randrange(50_000)},
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


def _measure_request_log(
    report: Report, installed: Installation, caller: Caller, knobs: Knobs
) -> None:
    off = {"RILLBASE_REQUEST_LOG_MIB": "0"}
    body = json.dumps(random_document(random.Random(5))).encode()
    with web(installed, "rillbase_server.asgi:application", off) as server:
        callers = (caller, Caller(server, caller.key))
        targets = [caller.target("plain/documents", body=body, status=201) for caller in callers]
        costs: tuple[list[float], list[float]] = ([], [])
        for number in range(knobs.rounds * ROUNDS_OF_LOG):
            # Neither of them always comes first.
            for which in (0, 1) if number % 2 else (1, 0):
                process = callers[which].server
                before = process.cpu_s()
                outcome = load.run(targets[which], connections=knobs.pipelined, seconds=1)
                costs[which].append((process.cpu_s() - before) / outcome.requests * 1e6)
    # What disturbs a round adds to its cost.
    on_us, off_us = min(costs[0]), min(costs[1])
    what = f"single inserts, {knobs.pipelined} outstanding"
    report.add("log_on_us", on_us, "µs", f"CPU time of the web process, {what}")
    report.add("log_off_us", off_us, "µs", "the same with the log turned off")
    report.add("log_added_percent", (on_us / off_us - 1) * 100, "%", "difference", "<= 2")
    entry_us = float(python(installed, _RECORD, str(knobs.rounds * ROUNDS_OF_LOG)))
    report.add("log_entry_us", entry_us, "µs", "CPU time to record an entry and write it")
    share = entry_us / off_us * 100
    report.add("log_entry_percent", share, "%", "its share of an insert", "<= 2")


if __name__ == "__main__":
    main()
