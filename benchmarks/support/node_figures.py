"""The storage node compared with the store without a socket, Valkey and PostgreSQL, and under
attack.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.peers import postgres_topics
from benchmarks.support.native import STORAGE_NODE, built
from benchmarks.support.node_enemies import DEAF, HALF, IDLE, Enemy, harming
from benchmarks.support.own_server import TOKEN
from benchmarks.support.report import Report, median
from benchmarks.support.storage_node import Loader, running_node, running_valkey

_PIPELINE = 64
#: Pipelines in which times are measured: short, because latency is what counts.
_AMONG_ENEMIES = 4


def add_node(report: Report, *, seconds: int, rounds: int, optimised: bool, postgres: bool) -> None:
    """Load the storage node, and the systems that it is compared with."""
    program = built(STORAGE_NODE, optimised=optimised)
    load = built(STORAGE_NODE, example="node_load", optimised=optimised)
    loader = Loader(load, seconds)
    for durability, goal in (("buffered", ">= 0.5"), ("sync", ">= 0.5")):
        rates = []
        for _ in range(rounds):
            alone = loader.embedded(durability, "publish")
            with running_node(program, durability) as port:
                rates.append((loader.rate(port, "publish", _PIPELINE, "bench"), alone))
        behind, alone = median([rate for rate, _ in rates]), median([rate for _, rate in rates])
        report.add(f"node_publish_{durability}_per_s", behind, "/s", "publishes over loopback")
        report.add(f"embedded_publish_{durability}_per_s", alone, "/s", "publishes in two threads")
        ratio = median([one / other for one, other in rates])
        report.add(f"node_vs_embedded_{durability}", ratio, "x", "over loopback ÷ embedded", goal)
    _add_ping(report, program, loader, rounds)
    if postgres:
        _add_postgres(report, program, loader)


def add_enemies(report: Report, *, seconds: int, rounds: int, optimised: bool) -> None:
    """Measure the latency of other clients during an attack by hostile clients, and without."""
    program = built(STORAGE_NODE, optimised=optimised)
    load = built(STORAGE_NODE, example="node_load", optimised=optimised)
    loader = Loader(load, seconds)
    clients = str(IDLE + HALF + DEAF + 100)
    pairs = []
    with running_node(program, "buffered", "--clients", clients) as port:
        enemy = Enemy(port, "other", TOKEN, "load")
        for _ in range(rounds):
            alone = loader.load(port, "mixed", _AMONG_ENEMIES, "bench")
            with harming(enemy):
                among = loader.load(port, "mixed", _AMONG_ENEMIES, "bench")
            pairs.append((alone, among))
    for name, at in (("alone", 0), ("among_enemies", 1)):
        p99 = median([pair[at]["p99_us"] for pair in pairs])
        report.add(f"node_p99_{name}_us", p99, "µs", f"of {_AMONG_ENEMIES} commands")
        rate = median([pair[at]["rate"] for pair in pairs])
        report.add(f"node_rate_{name}_per_s", rate, "/s", "commands answered")
    ratio = median([among["p99_us"] / alone["p99_us"] for alone, among in pairs])
    what = f"p99 with {IDLE:,} idle and other hostile clients ÷ without"
    report.add("node_p99_among_enemies_vs_alone", ratio, "x", what, "<= 1.5")


def _add_ping(report: Report, program: Path, loader: Loader, rounds: int) -> None:
    rates = []
    with running_node(program, "buffered") as port, running_valkey() as other:
        for _ in range(rounds):
            ours = loader.rate(port, "ping", _PIPELINE, "bench")
            rates.append((ours, loader.rate(other, "ping", _PIPELINE)))
    report.add("ping_per_s", median([rate for rate, _ in rates]), "/s", "PING, ours")
    report.add("valkey_ping_per_s", median([rate for _, rate in rates]), "/s", "PING, Valkey's")
    ratio = median([ours / theirs for ours, theirs in rates])
    report.add("ping_vs_valkey", ratio, "x", "ours ÷ Valkey's, same client", ">= 0.8")


def _add_postgres(report: Report, program: Path, loader: Loader) -> None:
    with running_node(program, "buffered") as port:
        ours = loader.rate(port, "mixed", _PIPELINE, "bench")
    theirs = postgres_topics.rate(loader.seconds, loader.connections)
    report.add("node_mixed_per_s", ours, "/s", "three subscriptions per publication, ours")
    report.add("postgres_mixed_per_s", theirs, "/s", "the same, PostgreSQL's")
    report.add("node_vs_postgres", ours / theirs, "x", "ours ÷ PostgreSQL's", ">= 10")
