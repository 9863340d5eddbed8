"""GraphQL compared with REST: the same reads by the same server, in the same run.

    python -m benchmarks.graphql [--quick] [--idle 10000] [--beside DIR]

One web process; rounds of both alternate. The measure is the server's CPU time per response:
`overhead` is that of GraphQL divided by that of REST. The first operation with a text is parsed and
validated; later ones are cached, as in production.

`subscription` figures are those of `benchmarks.stack` with GraphQL subscribers: the latency from a
write to its event, and the CPU time of the web process for both. `--idle 10000` measures the cost
of so many idle connections instead, and `--beside DIR` compares with another checkout, as in that
benchmark.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass

import requests

from benchmarks.support import beside, idle, load, servers
from benchmarks.support.client import GRAPHQL
from benchmarks.support.idle import Idle
from benchmarks.support.installation import Web
from benchmarks.support.live_figures import Live
from benchmarks.support.report import Report, median, percentile

CONNECTIONS = 8
DOCUMENTS = 100
SUBSCRIBERS = 100
WRITES_PER_S = 300.0
_WANT = "<= 1.6"


@dataclass(frozen=True, slots=True)
class Read:
    """The same query in both languages."""

    name: str
    what: str
    rest: load.Target
    graphql: load.Target


def main() -> None:
    """Measure and report."""
    if beside.compared("graphql"):
        return
    arguments = _arguments()
    seconds, rounds = (2.0, 3) if arguments.quick else (5.0, 7)
    params = {
        "seconds": seconds,
        "rounds": rounds,
        "connections": CONNECTIONS,
        "idle": arguments.idle,
    }
    report = Report("graphql", params)
    with servers.running(grid="processes", connections=idle.room(arguments.idle)) as installation:
        if arguments.idle:
            clients = Idle(installation.web.port, installation.key, "one", arguments.idle, GRAPHQL)
            idle.measure(report, clients, installation.web.process)
        else:
            caller = _Caller(installation.web.port, installation.key)
            _fill(caller)
            for read in (_one(caller), _page(caller), _typed(caller)):
                _measure(report, installation.web, read, seconds, rounds)
            live = Live(installation, WRITES_PER_S, 2 * seconds, GRAPHQL, "subscription_")
            live.one_of(report, SUBSCRIBERS)
            live.fan_out(report)
    report.finish()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[beside.OPTIONS],
    )
    parser.add_argument("--quick", action="store_true", help="finish in about a minute")
    parser.add_argument(
        "--idle", type=int, default=0, help="measure so many idle connections instead"
    )
    return parser.parse_args()


@dataclass(frozen=True, slots=True)
class _Caller:
    port: int
    key: str

    def target(
        self, path: str, body: object = None, *, status: int = 200, expect: str = ""
    ) -> load.Target:
        return load.Target(
            "127.0.0.1",
            self.port,
            path,
            (("Authorization", f"Bearer {self.key}"),),
            method="GET" if body is None else "POST",
            body=b"" if body is None else json.dumps(body).encode(),
            expect=expect,
        )

    def operation(self, text: str, expect: str) -> load.Target:
        return self.target("/graphql", {"query": text}, expect=expect)


def _fill(caller: _Caller) -> None:
    operations = [
        {"insert": {"_id": f"n{n}", "title": f"Note {n}", "note": "x" * 200}}
        for n in range(DOCUMENTS)
    ]
    answer = requests.post(
        f"http://127.0.0.1:{caller.port}/v1/collections/notes/documents:bulk",
        json={"operations": operations},
        headers={"Authorization": f"Bearer {caller.key}"},
        timeout=30,
    )
    answer.raise_for_status()


def _one(caller: _Caller) -> Read:
    return Read(
        "one",
        "one document by its key",
        caller.target("/v1/collections/notes/documents/n7", expect="Note 7"),
        caller.operation(
            '{ document(collection: "notes", key: "n7") { key version document } }', "Note 7"
        ),
    )


def _page(caller: _Caller) -> Read:
    return Read(
        "page",
        "50 documents of 250 bytes as JSON",
        caller.target("/v1/collections/notes/query", {"limit": 50}, expect="Note 1"),
        caller.operation(
            '{ documents(collection: "notes", first: 50) { nodes { key version document } '
            "pageInfo { hasNextPage endCursor } } }",
            "Note 1",
        ),
    )


def _typed(caller: _Caller) -> Read:
    return Read(
        "typed_page",
        "the same with the collection's typed fields",
        caller.target("/v1/collections/notes/query", {"limit": 50}, expect="Note 1"),
        caller.operation(
            "{ notes(first: 50) { nodes { key version document { title note } } "
            "pageInfo { hasNextPage endCursor } } }",
            "Note 1",
        ),
    )


def _measure(report: Report, server: Web, read: Read, seconds: float, rounds: int) -> None:
    ratios: list[float] = []
    for _ in range(rounds):
        rest, graphql = (_cpu_ms(server, target, seconds) for target in (read.rest, read.graphql))
        ratios.append(graphql / rest)
    outcome = load.run(read.graphql, connections=CONNECTIONS, seconds=seconds)
    report.add(
        f"{read.name}_overhead", median(ratios), "", f"CPU of GraphQL / REST: {read.what}", _WANT
    )
    report.add(f"{read.name}_rate", outcome.rate_per_s, "1/s", "answers by GraphQL")
    p99 = percentile(outcome.latencies_ms, 0.99)
    report.add(f"{read.name}_p99", p99, "ms", f"with {CONNECTIONS} connections")


def _cpu_ms(server: Web, target: load.Target, seconds: float) -> float:
    """Return the server's CPU time per response."""
    begin = server.cpu_s()
    outcome = load.run(target, connections=CONNECTIONS, seconds=seconds)
    return 1000 * (server.cpu_s() - begin) / outcome.requests


if __name__ == "__main__":
    main()
