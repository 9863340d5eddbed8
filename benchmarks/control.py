"""The control plane: authentication, one read through the full stack, and startup.

    python -m benchmarks.control [--quick] [--start] [--revocations N]

`read` is the rate and latency of `GET …/api-keys/{id}` on one web process with authentication,
limits, tenancy and audit enabled. `ratio` compares its CPU time with a bare Django view that does
the same SELECT in a transaction, measured alternately in the same run. `start` is the time of
`manage.py up` with an existing data directory, and the memory of each service afterwards (PSS:
shared pages counted once); `--start` measures only this, in about a minute. `--revocations 300`
measures instead how long so many revocations take to end their keys' connections to another server,
with the event layer's Valkey and without it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.support import load, revocations
from benchmarks.support.installation import (
    ROOT,
    Installation,
    Web,
    installation,
    python,
    web,
)
from benchmarks.support.report import Report, median, percentile
from rillbase_server.launcher.ports import free_port

GRID = "grid"
#: The grid is complete when its processes have not changed for a while.
GRID_DEADLINE_S, GRID_QUIET_S = 90.0, 12.0

_AUTHENTICATE = """
import json, sys, time
import django; django.setup()
from django.test import RequestFactory
from tenants.credentials.authenticate import require
request = RequestFactory().get("/v1/whoami", headers={"Authorization": "Bearer " + sys.argv[1]})
require(request)
times = []
end = time.perf_counter() + float(sys.argv[2])
while time.perf_counter() < end:
    begin = time.perf_counter_ns()
    require(request)
    times.append(time.perf_counter_ns() - begin)
times.sort()
print(json.dumps({"p50": times[len(times) // 2] / 1e3, "mean": sum(times) / len(times) / 1e3}))
"""

_MAKE_KEY = """
import json
import django; django.setup()
from tests.make import make_tenant
from tenants.models import ApiKey
from foundation.scope import scoped
account = make_tenant(plan="dedicated")
from tenants.models import Quota
plenty = {"requests_per_s": 1000000, "requests_burst": 1000000}
Quota(tenant=account.tenant, limits=plenty).save(using="staff")
with scoped(tenant_id=account.tenant.id):
    key = ApiKey.objects.get()
names = {"slug": account.slug, "tenant": str(account.tenant.id), "id": str(key.id)}
print(json.dumps({**names, "text": account.admin_key}))
"""


_PLAIN = {"DJANGO_SETTINGS_MODULE": "benchmarks.peers.plain_django_settings"}


@dataclass(frozen=True, slots=True)
class Knobs:
    """The extent of the measurement."""

    seconds: float
    rounds: int
    connections: int
    #: Whether only startup and memory are measured.
    start: bool
    #: Measures only so many revocations; 0: everything else.
    revocations: int


def main() -> None:
    """Measure and report."""
    knobs = _knobs()
    report = Report(
        "control",
        {"seconds": knobs.seconds, "rounds": knobs.rounds, "connections": knobs.connections},
    )
    if knobs.revocations:
        with installation() as installed:
            revocations.measure(report, installed, knobs.revocations)
        report.finish()
        return
    if not knobs.start:
        with installation() as installed:
            key = json.loads(python(installed, _MAKE_KEY))
            _measure_authentication(report, installed, key["text"], knobs)
            _measure_read(report, installed, key, knobs)
    _measure_start(report)
    report.finish()


def _knobs() -> Knobs:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="finish in about a minute")
    parser.add_argument("--seconds", type=float, help="length of one round of load")
    parser.add_argument("--rounds", type=int, help="interleaved rounds of each server")
    parser.add_argument("--connections", type=int, default=8, help="connections of the load")
    parser.add_argument("--start", action="store_true", help="measure only startup and memory")
    parser.add_argument(
        "--revocations", type=int, default=0, help="measure only so many revocations"
    )
    arguments = parser.parse_args()
    return Knobs(
        seconds=arguments.seconds or (3.0 if arguments.quick else 10.0),
        rounds=arguments.rounds or (3 if arguments.quick else 7),
        connections=arguments.connections,
        start=arguments.start,
        revocations=arguments.revocations,
    )


def _measure_authentication(
    report: Report, installed: Installation, key: str, knobs: Knobs
) -> None:
    times = json.loads(python(installed, _AUTHENTICATE, key, str(knobs.seconds)))
    report.add(
        "authenticate_us",
        times["mean"],
        "µs",
        "API-key authentication on a warm process, mean, including the lookup once a second",
        "<= 100",
    )
    report.add("authenticate_p50_us", times["p50"], "µs", "the same, median")


def _measure_read(
    report: Report, installed: Installation, key: dict[str, str], knobs: Knobs
) -> None:
    with (
        web(installed, "rillbase_server.asgi:application", {}) as ours,
        web(installed, "django.core.asgi:get_asgi_application", _PLAIN) as peer,
    ):
        full = load.Target(
            "127.0.0.1",
            ours.port,
            f"/api/v1/tenants/{key['slug']}/api-keys/{key['id']}",
            (("Authorization", f"Bearer {key['text']}"),),
            expect=key["id"],
        )
        bare = load.Target(
            "127.0.0.1",
            peer.port,
            f"/tenants/{key['tenant']}/api-keys/{key['id']}",
            expect=key["id"],
        )
        for target in (full, bare):
            load.run(target, connections=knobs.connections, seconds=2)
        pairs = [
            (_round(ours, full, knobs), _round(peer, bare, knobs)) for _ in range(knobs.rounds)
        ]
    ratios = [full_cpu / bare_cpu for (_, full_cpu), (_, bare_cpu) in pairs]
    rates = [outcome.rate_per_s for (outcome, _), _ in pairs]
    latencies = [ms for (outcome, _), _ in pairs for ms in outcome.latencies_ms]
    report.add(
        "read_per_s",
        median(rates),
        "/s",
        f"GET of one resource, full stack, one process, {knobs.connections} connections",
        ">= 700",
    )
    report.add("read_p50_ms", percentile(latencies, 0.5), "ms", "its latency, median")
    report.add("read_p99_ms", percentile(latencies, 0.99), "ms", "its latency, 99th percentile")
    report.add(
        "read_cpu_ms", median([cpu for (_, cpu), _ in pairs]), "ms", "its CPU time in the server"
    )
    report.add(
        "bare_per_s", median([o.rate_per_s for _, (o, _) in pairs]), "/s", "bare Django view"
    )
    report.add("bare_cpu_ms", median([cpu for _, (_, cpu) in pairs]), "ms", "its CPU time")
    report.add("ratio", median(ratios), "x", "CPU time, full stack ÷ bare view", "<= 2")


def _round(server: Web, target: load.Target, knobs: Knobs) -> tuple[load.Outcome, float]:
    """Return the results of one round of load, and the server's CPU time per request in ms."""
    before = server.cpu_s()
    outcome = load.run(target, connections=knobs.connections, seconds=knobs.seconds)
    return outcome, (server.cpu_s() - before) / outcome.requests * 1000


def _measure_start(report: Report) -> None:
    with tempfile.TemporaryDirectory(prefix="rillbase-bench-") as name:
        directory = Path(name)
        directory.chmod(0o755)
        with _up(directory) as (first, _):
            pass
        with _up(directory) as (again, launcher):
            services_mb = _memory_mb(directory)
            services_mb.pop(GRID, None)
            _await_grid(launcher)
            grid_mb = _memory_mb(directory)[GRID]
    report.add("first_start_s", first, "s", "`manage.py up` to ready, empty data directory")
    report.add("start_s", again, "s", "`manage.py up` to ready, data present", "<= 6")
    report.add(
        "memory_mb",
        sum(services_mb.values()),
        "MB",
        "memory (PSS) of all services but the grid",
        "<= 550",
    )
    for name, mb in services_mb.items():
        report.add(f"memory_{name.replace('-', '_')}_mb", mb, "MB", f"of it, {name}")
    report.add(
        "grid_memory_mb", grid_mb, "MB", "of the matching grid, with Spark, once it is ready"
    )


@contextmanager
def _up(directory: Path) -> Iterator[tuple[float, psutil.Process]]:
    """Start everything; yield the seconds that it took, and the launcher; then stop."""
    ready = directory / "ready.json"
    begin = time.perf_counter()
    child = subprocess.Popen(
        [
            sys.executable,
            "manage.py",
            "up",
            *_data(directory),
            "--port",
            str(free_port()),
            "--ready-file",
            str(ready),
        ],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
    )
    while not ready.exists():
        if child.poll() is not None:
            raise RuntimeError(f"`manage.py up` ended with {child.returncode}")
        time.sleep(0.02)
    try:
        yield time.perf_counter() - begin, psutil.Process(child.pid)
    finally:
        child.terminate()
        child.wait(60)


def _data(directory: Path) -> tuple[str, str]:
    return "--data-dir", str(directory / "data")


def _memory_mb(directory: Path) -> dict[str, float]:
    """Return the memory of each running service with its children."""
    command = [sys.executable, "manage.py", "status", "--json", *_data(directory)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    services = json.loads(done.stdout)["services"]
    return {
        service["name"]: service["memory_bytes"] / 1e6 for service in services if service["pid"]
    }


def _await_grid(launcher: psutil.Process) -> None:
    """Wait until no more processes of the grid appear."""
    family = _grid_family(launcher)
    deadline = time.monotonic() + GRID_DEADLINE_S
    while time.monotonic() < deadline:
        time.sleep(GRID_QUIET_S)
        before, family = family, _grid_family(launcher)
        if len(family) > 1 and family == before:
            break


def _grid_family(launcher: psutil.Process) -> list[psutil.Process]:
    return [
        process
        for service in launcher.children()
        if GRID in service.cmdline()
        for process in (service, *service.children(recursive=True))
    ]


if __name__ == "__main__":
    main()
