"""Online aggregates compared with manual ones: triggers, upserts, counters.

    python -m benchmarks.aggregates [--hot 1,100,10000] [--clients 1,4,16] [--batch 1,100]
        [--peers postgres-trigger,postgres-upsert,valkey-hincrby] [--seconds 2] [--rounds 3]
        [--connections 8] [--pipeline 1024] [--plots DIRECTORY] [--quick] [--beside DIR]

The schema is that of the paper's example, application performance monitoring: a call of an endpoint
is one event, which is stored and changes four five-minute rows: those of its endpoint, server, app
and customer. `hot` is the number of endpoints. Everything is durable: each event, or each batch of
events, is a transaction that is on disk before the response is sent.

PostgreSQL is driven by pgbench with prepared statements and the number of clients with which it is
fastest; the node by a native program over several connections, each with a pipeline of commands;
Valkey by the same program, five updates in one MULTI, `appendfsync always`. A ratio is the median
over the rounds, each of which runs all systems one after the other. Client and server share the
machine's cores. The benchmark takes five minutes.

`--beside DIR` compares with another checkout of the repository at an earlier commit, which has to
be set up: rounds of both alternate (benchmarks/support/beside.py).
"""

from __future__ import annotations

import argparse
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers import postgres_aggregates
from benchmarks.support import beside
from benchmarks.support.durable_servers import running_node, running_valkey
from benchmarks.support.native import STORAGE_NODE, built
from benchmarks.support.own_server import TOKEN, ask
from benchmarks.support.plot import Line, Plot
from benchmarks.support.report import RESULTS, Report, median

LOOPBACK = "127.0.0.1"
_PEERS = ("postgres-trigger", "postgres-upsert", "valkey-hincrby")
#: The goals for the ratio of our rate to a peer's, for one hot row: single events, and batches.
_GOALS = {
    ("postgres-trigger", 1): ">= 97",
    ("postgres-upsert", 1): ">= 20",
    ("valkey-hincrby", 1): ">= 1",
    ("postgres-trigger", 100): ">= 10",
    ("postgres-upsert", 100): ">= 10",
}
_DIMENSIONS = ["customer", "app", "server", "endpoint"]
_MEASURES = {
    "calls": {"op": "count"},
    "latency": {"op": "sum", "field": "latency_ms", "type": "int"},
}
_DEFINITION = {
    "dimensions": _DIMENSIONS,
    "time": {"field": "at", "bucket": "5m"},
    "measures": _MEASURES,
    "rollups": [_DIMENSIONS[:1], _DIMENSIONS[:2], _DIMENSIONS[:3]],
}
_DASHBOARD = {
    "filter": {"customer": "c0"},
    "group_by": ["endpoint", "at"],
    "from": "-24h",
    "limit": 10_000,
}


@dataclass(frozen=True, slots=True)
class _Load:
    """How the native program loads a server."""

    program: Path
    connections: int
    pipeline: int
    seconds: int

    def run(
        self, port: int, target: str, *options: str, connections: int | None = None
    ) -> dict[str, float]:
        """Return what the program measured."""
        writers = self.connections if connections is None else connections
        access = ["--user", "bench", "--token", TOKEN] if target == "node" else []
        command = [
            str(self.program), "--address", f"{LOOPBACK}:{port}", "--target", target, *access,
            "--connections", str(writers), "--seconds", str(self.seconds), *options,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return answer

    def rate(self, port: int, target: str, hot: int, batch: int) -> float:
        """Return the rate of a server, in events per second."""
        depth = max(4, self.pipeline // batch)
        size = ["--hot", str(hot), "--batch", str(batch), "--pipeline", str(depth)]
        return self.run(port, target, *size)["rate"]


def main() -> None:
    """Measure and report."""
    if beside.compared("aggregates"):
        return
    arguments = _arguments()
    params = {name: value for name, value in vars(arguments).items() if name != "plots"}
    report = Report("aggregates", beside.without_options(params))
    optimised = arguments.optimised
    node = built(STORAGE_NODE, optimised=optimised)
    program = built(STORAGE_NODE, example="aggregate_load", optimised=optimised)
    load = _Load(program, arguments.connections, arguments.pipeline, arguments.seconds)
    with postgres_aggregates.running() as postgres:
        for batch in arguments.batch:
            rates = [
                _add_peers(report, (node, load, postgres), (hot, batch), arguments)
                for hot in arguments.hot
            ]
            _plot(arguments.hot, rates, batch, arguments.plots)
            _add_cost(report, (node, load), batch, arguments.rounds)
        _add_dashboard(report, (node, load, postgres), arguments.seconds)
    report.finish()


def _ours(node: Path, load: _Load, definition: object, hot: int, batch: int) -> float:
    with running_node(node) as port:
        ask(port, "RB.AGG.DEFINE", "calls", json.dumps(definition))
        rate = load.rate(port, "node", hot, batch)
        if definition is _DEFINITION:
            _check(port)
        return rate


def _check(port: int) -> None:
    """Every level counts the same events."""
    counts = set()
    for depth in range(1, 5):
        query = {"rollup": _DIMENSIONS[:depth], "group_by": [], "snapshot": "fresh"}
        answer = json.loads(ask(port, "RB.AGG.QUERY", "calls", json.dumps(query)))
        counts.add((answer["rows"][0]["calls"], answer["rows"][0]["latency"]))
    if len(counts) != 1:
        raise RuntimeError(f"levels differ: {counts}")


def _add_peers(
    report: Report,
    servers: tuple[Path, _Load, str],
    case: tuple[int, int],
    arguments: argparse.Namespace,
) -> dict[str, float]:
    """Compare event rates; return each system's."""
    hot, batch = case
    node, load, postgres = servers
    name = f"hot_{hot}" + (f"_batch_{batch}" if batch > 1 else "")
    rates: dict[str, list[float]] = {"node": [], **{peer: [] for peer in arguments.peers}}
    clients = {
        peer: _fastest(peer, case, postgres, arguments.clients)
        for peer in arguments.peers
        if peer.startswith("postgres")
    }
    for _ in range(arguments.rounds):
        rates["node"].append(_ours(node, load, _DEFINITION, hot, batch))
        for peer in arguments.peers:
            if peer in clients:
                rate = _postgres(peer, case, postgres, clients[peer], arguments.seconds)
            else:
                with running_valkey() as port:
                    rate = load.rate(port, "valkey", hot, batch)
            rates[peer].append(rate)
    for system, samples in rates.items():
        what = f"events, {clients[system]} clients" if system in clients else "events"
        report.add(f"{name}_{system}_per_s", median(samples), "/s", what)
    for peer in arguments.peers:
        ratios = [one / other for one, other in zip(rates["node"], rates[peer], strict=True)]
        goal = _GOALS.get((peer, batch), "") if hot == 1 else ""
        report.add(f"{name}_vs_{peer}", median(ratios), "x", "our rate divided by theirs", goal)
    return {system: median(samples) for system, samples in rates.items()}


def _postgres(peer: str, case: tuple[int, int], url: str, clients: int, seconds: int) -> float:
    hot, batch = case
    kind = peer.removeprefix("postgres-")
    return postgres_aggregates.rate(
        url, kind, hot=hot, clients=clients, batch=batch, seconds=seconds
    )


def _fastest(peer: str, case: tuple[int, int], url: str, choices: list[int]) -> int:
    """Return the number of clients with which PostgreSQL is fastest."""
    if len(choices) == 1:
        return choices[0]
    rates = {clients: _postgres(peer, case, url, clients, 1) for clients in choices}
    return max(choices, key=lambda clients: rates[clients])


def _plot(hot: list[int], rates: list[dict[str, float]], batch: int, directory: Path) -> None:
    """Draw the event rate of each system by the number of endpoints."""
    lines = [
        Line(system, [(rows, rate[system]) for rows, rate in zip(hot, rates, strict=True)])
        for system in rates[0]
    ]
    batches = "each a transaction" if batch == 1 else f"{batch} a transaction"
    title = f"Durable events, {batches}, of which each changes four rows"
    plot = Plot(title, "endpoints", "events a second", lines)
    plot.save(directory / ("aggregates.svg" if batch == 1 else f"aggregates-batch-{batch}.svg"))


def _add_cost(report: Report, ours: tuple[Path, _Load], batch: int, rounds: int) -> None:
    """Compare events that change four rows with events that are only stored."""
    node, load = ours
    plain = {**_DEFINITION, "measures": {}}
    ratios = []
    for _ in range(rounds):
        alone = _ours(node, load, plain, 1, batch)
        ratios.append(alone / _ours(node, load, _DEFINITION, 1, batch))
    name = "cost_of_aggregates" + (f"_batch_{batch}" if batch > 1 else "")
    goal = "<= 1.15" if batch == 1 else "<= 2"
    report.add(name, median(ratios), "x", "events stored only ÷ events stored and aggregated", goal)


def _add_dashboard(report: Report, servers: tuple[Path, _Load, str], seconds: int) -> None:
    """Measure a dashboard's query while events arrive at full rate, with few and many events.

    Its viewers share one snapshot per second, and an answer at it is reused; a query at the newest
    state reads all rows.
    """
    node, load, postgres = servers
    with running_node(node) as port:
        ask(port, "RB.AGG.DEFINE", "calls", json.dumps(_DEFINITION))
        _fill_day(port)
        query = ["--query", json.dumps(_DASHBOARD)]
        newest = ["--query", json.dumps({**_DASHBOARD, "snapshot": "fresh"})]
        size = ["--hot", "20", "--pipeline", str(load.pipeline)]
        alone = load.run(port, "node", *query, connections=0)
        newest_alone = load.run(port, "node", *newest, connections=0)
        first, at_node = _loaded(port, load, *size, *query)
        newest_first, newest_at_node = _loaded(port, load, *size, *newest)
        for _ in range(2):
            load.run(port, "node", *size)
        later = _loaded(port, load, *size, *newest)[1]
    back, newest_back = "round trip", "the newest, to the client and back"
    figures = {
        "alone": (alone["query_p50_us"] / 1e3, f"{back}, without other load", "<= 2"),
        "newest_alone": (newest_alone["query_p50_us"] / 1e3, f"{newest_back}, alone", "<= 2"),
        "at_node": (at_node, "in the node under full load, mean", "<= 2"),
        "newest_at_node": (newest_at_node, "the newest, in the node under full load", "<= 2"),
        "p50": (first["query_p50_us"] / 1e3, f"{back} under full load", ""),
        "p99": (first["query_p99_us"] / 1e3, f"{back} under full load", ""),
        "newest_p50": (newest_first["query_p50_us"] / 1e3, f"{newest_back} under full load", ""),
    }
    for name, (value, what, goal) in figures.items():
        report.add(f"dashboard_{name}_ms", value, "ms", what, goal)
    ratio = later / max(0.001, newest_at_node)
    report.add("dashboard_later", ratio, "x", "after four times as many events ÷ before", "<= 1.5")
    postgres_aggregates.rate(postgres, "plain", hot=20, clients=4, batch=100, seconds=seconds)
    raw = postgres_aggregates.query_ms(postgres, 24)
    report.add("dashboard_postgres_raw_ms", raw, "ms", "PostgreSQL, from the raw events")


def _loaded(port: int, load: _Load, *options: str) -> tuple[dict[str, float], float]:
    """Query while events arrive; return what was measured, and the mean time of a query in the
    node.
    """
    before_ms = _query_ms(port)
    measured = load.run(port, "node", *options)
    return measured, (_query_ms(port) - before_ms) / max(1.0, measured["queries"])


def _query_ms(port: int) -> float:
    """Return the total time of all queries in the node so far."""
    return int(ask(port, "INFO", user="admin")["query_micros_total"]) / 1e3


def _fill_day(port: int) -> None:
    """Add a call of each of 20 endpoints in each five minutes of a day."""
    now = int(ask(port, "TIME")[0]) * 1000
    for step in range(288):
        at = now - step * 300_000
        events = [
            json.dumps({
                "customer": "c0", "app": "a0", "server": f"s{endpoint // 10}",
                "endpoint": f"e{endpoint}", "latency_ms": 7, "at": at,
            })
            for endpoint in range(20)
        ]  # fmt: skip
        ask(port, "RB.AGG.ADD", "calls", *events)


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[beside.OPTIONS],
    )
    parser.add_argument("--hot", type=_numbers, default=[1, 100, 10_000], help="endpoints called")
    parser.add_argument("--clients", type=_numbers, default=[1, 4, 16], help="of PostgreSQL")
    parser.add_argument("--batch", type=_numbers, default=[1, 100], help="events a transaction")
    parser.add_argument("--peers", type=lambda text: text.split(","), default=list(_PEERS))
    parser.add_argument("--seconds", type=int, default=2, help="of each run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=8, help="to the node and to Valkey")
    parser.add_argument("--pipeline", type=int, default=1024, help="events in flight on each")
    parser.add_argument("--plots", type=Path, default=RESULTS, help="where pictures go")
    parser.add_argument("--quick", action="store_true", help="a minute")
    parser.add_argument("--debug", dest="optimised", action="store_false", help="unoptimised")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.hot, arguments.clients, arguments.batch = [1], [4], [1]
        arguments.seconds, arguments.rounds = 2, 1
    return arguments


if __name__ == "__main__":
    main()
