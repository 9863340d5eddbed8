"""The full stack: from a write over a WebSocket to the event on another.

Each write matches one of 100 to 10,000 subscribers. The load generator shares the machine with
all servers. Latencies are measured from before the write is sent until its event has been read; CPU
time is measured from the first write, after all clients have subscribed. Fan-out is measured
separately: each write causes an event to every one of many subscribers.

`--idle 10000` measures so many idle, authenticated connections instead: memory of the app server
without a subscription and with one on each, and the time to open them.

`--profile FILE` measures once more while py-spy samples the app server's stacks, prints the
functions that take most of its CPU time, and writes the stacks in the format of flame graphs and
speedscope.app. py-spy has to be installed, and needs ptrace.

`--beside DIR` compares with another checkout of the repository at an earlier commit, which has to
be set up: rounds of both alternate (benchmarks/support/beside.py).

`--hostile residual,silent,many,introspection,pages,reads,headers,sockets,uploads` measures the
effect of a hostile client on another tenant's latencies (benchmarks/support/hostile.py): rounds
with and without it alternate, and their medians are compared. A hostile tenant has ordinary quotas.
Throughout, the benchmark counts a signed-in user's ordinary requests and how many of them fail, and
compares the web process's memory with that before.
"""

from __future__ import annotations

import argparse
import json
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from benchmarks.support import (
    beside,
    hostile,
    idle,
    neighbours,
    read_attack,
    sampling,
    servers,
    upload_attack,
)
from benchmarks.support.client import REALTIME
from benchmarks.support.idle import Idle
from benchmarks.support.live_figures import Live
from benchmarks.support.report import Report
from benchmarks.support.servers import Servers
from benchmarks.support.sockets import Crowd

#: Subscribers while another tenant is hostile.
NEIGHBOURS = 100


@dataclass(frozen=True, slots=True)
class Knobs:
    """The extent of the measurement."""

    subscribers: list[int]
    writes: float
    seconds: float
    grid: str
    hostile: list[str]
    idle: int
    profile: Path | None


def main() -> None:
    """Measure and report."""
    if beside.compared("stack"):
        return
    knobs = _knobs()
    report = Report(
        "stack",
        {
            "subscribers": knobs.subscribers,
            "writes_per_s": knobs.writes,
            "seconds": knobs.seconds,
            "grid": knobs.grid,
            "hostile": knobs.hostile,
            "idle": knobs.idle,
        },
    )
    with servers.running(grid=knobs.grid, connections=idle.room(knobs.idle)) as installation:
        if knobs.hostile:
            _measure_hostile(report, installation, knobs)
        elif knobs.idle:
            clients = Idle(installation.web.port, installation.key, "one", knobs.idle, REALTIME)
            idle.measure(report, clients, installation.web.process)
        else:
            _measure_live(report, Live(installation, knobs.writes, knobs.seconds), knobs)
    report.finish()


def _knobs() -> Knobs:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[beside.OPTIONS],
    )
    parser.add_argument("--quick", action="store_true", help="finish in about a minute")
    parser.add_argument("--subscribers", help="how many, for example 100,1000,10000")
    parser.add_argument("--writes", type=float, default=300.0, help="writes a second")
    parser.add_argument("--seconds", type=float, help="length of each run")
    parser.add_argument(
        "--idle", type=int, default=0, help="measure so many idle connections instead"
    )
    parser.add_argument("--profile", type=Path, metavar="FILE", help="file for its stacks")
    parser.add_argument("--hostile", help=f"neighbours instead: {','.join(hostile.KINDS)}")
    parser.add_argument("--grid", choices=["processes", "spark"], default="processes")
    arguments = parser.parse_args()
    several = arguments.subscribers or ("100" if arguments.quick else "100,1000,10000")
    if arguments.profile:
        sampling.program()
    return Knobs(
        subscribers=[int(number) for number in several.split(",")],
        writes=arguments.writes,
        seconds=arguments.seconds or (5.0 if arguments.quick else 30.0),
        grid=arguments.grid,
        hostile=arguments.hostile.split(",") if arguments.hostile else [],
        idle=arguments.idle,
        profile=arguments.profile,
    )


def _measure_live(report: Report, live: Live, knobs: Knobs) -> None:
    for subscribers in knobs.subscribers:
        live.one_of(report, subscribers)
    live.fan_out(report)
    if knobs.profile:
        live.profile(knobs.subscribers[0], knobs.profile)


def _measure_hostile(report: Report, installation: Servers, knobs: Knobs) -> None:
    """Measure one tenant's latencies, alternately with a hostile client and without."""
    port = installation.web.port
    _make_dataset(port, installation.other_key, installation.other_tenant)
    if {"pages", "reads"} & set(knobs.hostile):
        read_attack.fill(port, installation.other_key, "own")
    crowd = Crowd(port, installation.key, "one", NEIGHBOURS, 1, knobs.writes, knobs.seconds)
    for kind in knobs.hostile:
        other = hostile.Hostile(kind, port, installation.other_key, "own")
        neighbours.measure(report, crowd, other, installation.web.process)


def _make_dataset(port: int, key: str, tenant: str) -> None:
    """Create the targets of the hostile tenant's uploads."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/v1/tenants/{tenant}/datasets",
        json.dumps(upload_attack.DEFINITION).encode(),
        {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=30).read()


if __name__ == "__main__":
    main()
