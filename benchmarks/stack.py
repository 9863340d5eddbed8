"""The full stack: from a write over a WebSocket to the event on another.

Each write matches one of 100 to 10,000 subscribers. The load generator shares the machine with
all servers. Latencies begin before the write is sent and end when its event has been read; CPU
time is that from the first write on, when everybody has subscribed. Fan-out is measured apart: each
write is told to every one of many subscribers.

`--hostile residual,silent,many,headers,sockets,uploads` measures what a client that is hard on its
neighbours does to a tenant's latencies (benchmarks/support/hostile.py): rounds without it and with
it take turns, and the middle of each kind are compared. A hostile tenant has the usual quotas.
All along a signed-in user's ordinary requests are counted, and those of them that fail, and the web
process's memory is compared with what it was before.
"""

from __future__ import annotations

import argparse
import json
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace

import psutil

from benchmarks.support import hostile, neighbours, sockets, upload_attack
from benchmarks.support.installation import Installation, Web, installation, python, service, web
from benchmarks.support.report import Report, percentile
from benchmarks.support.sockets import Crowd, Heard

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
    for name in ("one", "many"):
        made_of = Collection.objects.create(name=name)
        Index.objects.create(collection=made_of, name="shard", fields=[["shard", 1]], state="ready")
scopes = ["documents:read", "documents:write"]
key = make_key(made.tenant, scopes=scopes)
other = make_tenant()
with scoped(tenant_id=other.tenant.id):
    Collection.objects.create(name="own")
told = {"key": key, "other_key": other.admin_key, "other": other.slug}
print(json.dumps(told))
"""
FAN_OUT = 500
#: Subscribers while another tenant is hostile.
NEIGHBOURS = 100


@dataclass(frozen=True, slots=True)
class Knobs:
    """How much is measured."""

    subscribers: list[int]
    writes: float
    seconds: float
    grid: str
    hostile: list[str]


@dataclass(frozen=True, slots=True)
class Stack:
    """All servers of an installation."""

    server: Web
    processes: Mapping[str, psutil.Process]
    key: str
    other_key: str

    def run(self, crowd: Crowd) -> Heard:
        """Let a crowd watch and write, and look at what that costs each service."""
        pids = {name: process.pid for name, process in self.processes.items()}
        return sockets.run(replace(crowd, services=pids))


def main() -> None:
    """Measure and report."""
    knobs = _knobs()
    report = Report(
        "stack",
        {
            "subscribers": knobs.subscribers,
            "writes_per_s": knobs.writes,
            "seconds": knobs.seconds,
            "grid": knobs.grid,
            "hostile": knobs.hostile,
        },
    )
    with ExitStack() as opened:
        stack = _start(opened, knobs)
        for kind in knobs.hostile:
            _measure_hostile(report, stack, kind, knobs)
        if not knobs.hostile:
            for subscribers in knobs.subscribers:
                _measure_one_of(report, stack, subscribers, knobs)
            _measure_fan_out(report, stack, knobs)
    report.finish()


def _knobs() -> Knobs:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="finish in about a minute")
    parser.add_argument("--subscribers", help="how many, for example 100,1000,10000")
    parser.add_argument("--writes", type=float, default=300.0, help="writes a second")
    parser.add_argument("--seconds", type=float, help="length of each run")
    parser.add_argument("--hostile", help=f"neighbours instead: {','.join(hostile.KINDS)}")
    parser.add_argument("--grid", choices=["processes", "spark"], default="processes")
    given = parser.parse_args()
    several = given.subscribers or ("100" if given.quick else "100,1000,10000")
    return Knobs(
        subscribers=[int(number) for number in several.split(",")],
        writes=given.writes,
        seconds=given.seconds or (5.0 if given.quick else 30.0),
        grid=given.grid,
        hostile=given.hostile.split(",") if given.hostile else [],
    )


def _start(opened: ExitStack, knobs: Knobs) -> Stack:
    place: Installation = opened.enter_context(installation())
    made = json.loads(python(place, _MAKE))
    relay = opened.enter_context(service(place, "relay", {}))
    grid = opened.enter_context(service(place, "grid", {"RILLBASE_GRID": knobs.grid}))
    server = opened.enter_context(web(place, "rillbase_server.asgi:application", {}))
    _make_dataset(server.port, made["other_key"], made["other"])
    processes = {"web": server.process, "relay": relay.process, "grid": grid.process}
    return Stack(server, processes, made["key"], made["other_key"])


def _make_dataset(port: int, key: str, tenant: str) -> None:
    """Make what the hostile tenant uploads to."""
    asked = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/v1/tenants/{tenant}/datasets",
        json.dumps(upload_attack.DEFINITION).encode(),
        {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    urllib.request.urlopen(asked, timeout=30).read()


def _measure_hostile(report: Report, stack: Stack, kind: str, knobs: Knobs) -> None:
    """Measure one tenant's latencies, with a hostile client and without, in turns."""
    port = stack.server.port
    crowd = Crowd(port, stack.key, "one", NEIGHBOURS, 1, knobs.writes, knobs.seconds)
    other = hostile.Hostile(kind, port, stack.other_key, "own")
    neighbours.measure(report, crowd, other, stack.server.process)


def _measure_one_of(report: Report, stack: Stack, subscribers: int, knobs: Knobs) -> None:
    crowd = Crowd(stack.server.port, stack.key, "one", subscribers, 1, knobs.writes, knobs.seconds)
    heard = stack.run(crowd)
    name = f"one_of_{subscribers}"
    what = f"{knobs.writes:g} writes/s, each for one of {subscribers}"
    _add_latencies(report, name, what, heard)
    per_write = {
        service: seconds / heard.written * 1000 for service, seconds in heard.cpu_s.items()
    }
    for service_name, ms in per_write.items():
        report.add(f"{name}_{service_name}_cpu_ms", ms, "ms", f"CPU of {service_name} a write")
    rate = 1000 / per_write["web"]
    report.add(f"{name}_per_core", rate, "/s", "writes for a core of the app server", ">= 1000")
    report.add(f"{name}_subscribed", subscribers / heard.subscribing_s, "/s", "subscribed")


def _measure_fan_out(report: Report, stack: Stack, knobs: Knobs) -> None:
    writes = max(5.0, knobs.writes / 30)
    crowd = Crowd(stack.server.port, stack.key, "many", FAN_OUT, FAN_OUT, writes, knobs.seconds)
    heard = stack.run(crowd)
    what = f"{writes:g} writes/s, each for all of {FAN_OUT}"
    _add_latencies(report, "fan_out", what, heard)
    rate = heard.delivered / heard.cpu_s["web"]
    what = "events delivered for a core of the app server"
    report.add("fan_out_per_core", rate, "/s", what, ">= 20000")


def _add_latencies(report: Report, name: str, what: str, heard: Heard) -> None:
    achieved = heard.written / heard.writing_s
    report.add(f"{name}_per_s", achieved, "/s", f"{what}: achieved")
    report.add(f"{name}_expected", heard.expected, "", "events that were to come")
    report.add(f"{name}_delivered", heard.delivered, "", "events that came")
    lost = heard.expected - heard.delivered
    report.add(f"{name}_lost", lost, "", "events that did not", "<= 0")
    report.add(f"{name}_disturbed", heard.disturbances, "", "status, reset and end frames")
    for label, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)):
        if heard.latencies_ms:
            value = percentile(heard.latencies_ms, share)
            report.add(f"{name}_{label}_ms", value, "ms", f"from before the write, {label}")
    if heard.answers_ms:
        report.add(
            f"{name}_ack_p50_ms", percentile(heard.answers_ms, 0.5), "ms", "write acknowledged"
        )


if __name__ == "__main__":
    main()
