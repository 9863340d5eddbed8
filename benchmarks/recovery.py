"""The time after a failure until all subscriptions are live again, with nothing lost.

    python -m benchmarks.recovery [--queries 10000] [--documents 100000] [--grid processes|spark]
        [--kill node,grid,relay,valkey,web] [--backend postgres|native] [--writes 50]
        [--seconds 60] [--quick]

Every live query covers a separate ten-thousandth of the documents, over WebSockets, while writes
continue. Then something is killed with SIGKILL (`valkey`: emptied): a filter node (`node`), the
whole grid with Spark's driver (`grid`), the relay, Valkey's data, the app server, and with
`--backend native` the storage node (`storage`). The benchmark
restarts services as the launcher does, at once. The system has recovered when every subscription is
`live` and has every document written until then; the time is that of the last subscription. At the
end, all rows are compared with the writes.

With more than 100,000 queries the event layer and the grid are measured alone: queries are
registered in bulk, a filter node is killed while writes continue, and the notifications of the
others are measured until the new node watches every query (benchmarks/support/node_restart.py).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from dataclasses import dataclass

from benchmarks.support import node_restart
from benchmarks.support.grid_run import GridEpoch, Run
from benchmarks.support.live_stack import KILLS, NATIVE_KILLS, Stack, live_stack, until
from benchmarks.support.native import built
from benchmarks.support.nodes_life import NodesLife
from benchmarks.support.report import Report
from benchmarks.support.watchers import Tally, Watchers

#: With more queries, they are registered in bulk instead of by clients.
MOST_SUBSCRIBED = 100_000
#: The timeout of a recovery.
TIMEOUT_S = 120.0
#: A failure is noticed within this time, or not at all: subscriptions are stale after two seconds.
SHOWS_S = 6.0
#: The system is healthy after it has been so for this long.
CALM_S = 1.0
GOALS = {"node": "<= 5", "grid": "<= 40", "storage": "<= 5"}


@dataclass(frozen=True, slots=True)
class Knobs:
    """The extent of the measurement."""

    queries: int
    documents: int
    writes: float
    #: Duration of the writes before, during and after the restart of a node among many queries.
    seconds: int
    grid: str
    backend: str
    kill: list[str]


def main() -> None:
    """Measure and report."""
    knobs = _knobs()
    params: dict[str, object] = {
        "queries": knobs.queries,
        "documents": knobs.documents,
        "writes_per_s": knobs.writes,
        "grid": knobs.grid,
        "backend": knobs.backend,
        "kill": knobs.kill,
    }
    report = Report("recovery", params)
    if knobs.queries > MOST_SUBSCRIBED:
        _restart_node(report, knobs)
    else:
        with live_stack(knobs.grid, knobs.backend) as stack:
            asyncio.run(_measure(report, stack, knobs))
    report.finish()


def _restart_node(report: Report, knobs: Knobs) -> None:
    """Measure the restart of a filter node among very many queries."""
    program = built("rillbase-grid-nodes", example="grid_load")
    grid = GridEpoch(1, 1, write_partitions=2)
    run = Run("range", knobs.queries, round(knobs.writes), knobs.seconds, grid)
    measured = node_restart.measure(program, run)
    took_s = node_restart.TIMEOUT_S if measured.complete_s is None else measured.complete_s
    what = "from the kill of a node until it watched all queries"
    report.add("node_complete_s", took_s, "s", what, "<= 60")
    report.add("others_lost_terms", measured.interrupted, "", "other nodes that restarted", "<= 0")
    for name, load, goal in (
        ("before", measured.before, ""),
        ("others_during", measured.during, "<= 50"),
        ("after", measured.after, ""),
    ):
        for percentile in ("p50_ms", "p99_ms", "max_ms"):
            limit = goal if percentile == "p99_ms" else ""
            report.add(f"{name}_{percentile}", load[percentile], "ms", "latency", limit)
        difference = abs(load["expected"] - load["delivered"])
        what = "notifications that were expected and did not come, or the reverse"
        report.add(f"{name}_lost", difference, "", what, "<= 0")
    for took_ms, command in measured.slow_calls[:10]:
        print(f"{command}: {took_ms:.1f} ms", file=sys.stderr)
    what = f"calls to the event layer that took more than {node_restart.CALL_MS:g} ms"
    report.add("slow_calls", len(measured.slow_calls), "", what)
    longest_ms = measured.slow_calls[0][0] if measured.slow_calls else 0.0
    report.add("slowest_call_ms", longest_ms, "ms", "the longest of them")


def _knobs() -> Knobs:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of queries and documents")
    parser.add_argument("--queries", type=int, help="live queries")
    parser.add_argument("--documents", type=int, help="documents of the collection")
    parser.add_argument("--writes", type=float, default=50.0, help="writes a second")
    parser.add_argument("--seconds", type=int, default=60, help="duration of the writes in bulk")
    parser.add_argument("--grid", choices=["processes", "spark"], default="processes")
    parser.add_argument("--backend", choices=["postgres", "native"], default="postgres")
    parser.add_argument("--kill", help="what to kill, one after the other (default: everything)")
    arguments = parser.parse_args()
    kills = (*KILLS, *(NATIVE_KILLS if arguments.backend == "native" else ()))
    kill = arguments.kill.split(",") if arguments.kill else list(kills)
    if unknown := set(kill) - set(kills):
        parser.error(f"not known: {', '.join(unknown)}")
    return Knobs(
        queries=arguments.queries or (1_000 if arguments.quick else 10_000),
        documents=arguments.documents or (10_000 if arguments.quick else 100_000),
        writes=arguments.writes,
        seconds=10 if arguments.quick else arguments.seconds,
        grid=arguments.grid,
        backend=arguments.backend,
        kill=kill,
    )


async def _measure(report: Report, stack: Stack, knobs: Knobs) -> None:
    await asyncio.to_thread(stack.fill, knobs.documents, knobs.queries)
    watchers = Watchers(stack.web.port, stack.key, "held", knobs.queries)
    began = time.monotonic()
    await watchers.start()
    try:
        if not await until(lambda: watchers.whole, TIMEOUT_S):
            raise RuntimeError("the queries did not become live")
        rate = knobs.queries / (time.monotonic() - began)
        report.add("subscribed_per_s", rate, "/s", "initial live queries")
        watchers.write(knobs.writes)
        for what in knobs.kill:
            print(f"{what} …", file=sys.stderr)
            await _fail(report, stack, watchers, what)
        written = await watchers.stop_writing()
        await until(lambda: watchers.whole, TIMEOUT_S)
        report.add("written", written, "", "documents written meanwhile")
        report.add("lost", watchers.missing, "", "of which not received", "<= 0")
    finally:
        await watchers.close()


async def _fail(report: Report, stack: Stack, watchers: Watchers, what: str) -> None:
    """Cause one failure and wait until the system has recovered."""
    watchers.tally = Tally()
    began = time.monotonic()
    with NodesLife(stack.valkey()) as nodes:
        await asyncio.to_thread(stack.kill, what)
        shown = await until(lambda: watchers.stale > 0, SHOWS_S)
        mended_s = await _until_calm(watchers)
    took = TIMEOUT_S if mended_s is None else mended_s - began
    tally = watchers.tally
    what_is = f"from the kill of {what} until all were live and complete"
    if not shown:
        took, what_is = 0.0, f"no subscription was stale after the kill of {what}"
    print(f"{what}: {took:.1f} s", file=sys.stderr)
    report.add(f"{what}_s", took, "s", what_is, GOALS.get(what, ""))
    if nodes.held_s is not None:
        held_s, watched_s = nodes.held_s - began, (nodes.watched_s or began) - began
        report.add(f"{what}_held_s", held_s, "s", "until the last new node had its partition")
        report.add(
            f"{what}_rebuilt_s", watched_s, "s", "until the last node had read its documents"
        )
    report.add(
        f"{what}_longest_s",
        tally.longest_s,
        "s",
        "the longest time that a subscription was not live",
    )
    report.add(f"{what}_mended", float(mended_s is not None), "", "1: it was", ">= 1")
    report.add(f"{what}_stale", tally.stale, "", "times that a subscription was reported stale")
    report.add(f"{what}_resets", tally.resets, "", "subscriptions that started over")
    report.add(f"{what}_reconnects", tally.reconnects, "", "connections that broke")


async def _until_calm(watchers: Watchers) -> float | None:
    """Wait until the system has been healthy for a while; return since when, or None after the
    timeout.
    """
    end = time.monotonic() + TIMEOUT_S
    since: float | None = None
    while time.monotonic() < end:
        now = time.monotonic()
        # A write that has just been acknowledged may not have been delivered yet.
        well = not watchers.stale and watchers.missing <= 1 + len(watchers.watched) // 1_000
        since = (since or now) if well else None
        if since is not None and now - since >= CALM_S:
            return since
        await asyncio.sleep(0.05)
    return None


if __name__ == "__main__":
    main()
