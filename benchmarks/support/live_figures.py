"""The figures of live queries through the full stack, over either protocol."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from rich.table import Table

from benchmarks.support import sampling, sockets
from benchmarks.support.client import REALTIME, Protocol
from benchmarks.support.report import Report, console, percentile
from benchmarks.support.sampling import Sampling
from benchmarks.support.servers import Servers
from benchmarks.support.sockets import Crowd, SubscriberResults

FAN_OUT = 500
#: The number of functions of a profile that are shown.
TOP = 25


@dataclass(frozen=True, slots=True)
class Live:
    """The measurements of live queries."""

    servers: Servers
    writes_per_s: float
    seconds: float
    protocol: Protocol = REALTIME
    #: The prefix of the figures' names.
    prefix: str = ""

    def one_of(self, report: Report, subscribers: int) -> None:
        """Measure writes that each match one of several subscribers."""
        result = sockets.run(self._one_of(subscribers))
        name = f"{self.prefix}one_of_{subscribers}"
        what = f"{self.writes_per_s:g} writes/s, each to one of {subscribers}"
        _add_latencies(report, name, what, result)
        for service, seconds in result.cpu_s.items():
            ms = seconds / result.written * 1000
            report.add(f"{name}_{service}_cpu_ms", ms, "ms", f"CPU of {service} a write")
        rate = result.written / result.cpu_s["web"]
        goal = "" if self.prefix else ">= 1000"
        report.add(f"{name}_per_core", rate, "/s", "writes per core of the app server", goal)
        report.add(f"{name}_subscribed", subscribers / result.subscribing_s, "/s", "subscribed")

    def fan_out(self, report: Report) -> None:
        """Measure writes that each match all subscribers."""
        writes = max(5.0, self.writes_per_s / 30)
        result = sockets.run(self._crowd("many", FAN_OUT, FAN_OUT, writes))
        what = f"{writes:g} writes/s, each to all of {FAN_OUT}"
        _add_latencies(report, f"{self.prefix}fan_out", what, result)
        rate = result.delivered / result.cpu_s["web"]
        what = "events delivered per core of the app server"
        goal = "" if self.prefix else ">= 20000"
        report.add(f"{self.prefix}fan_out_per_core", rate, "/s", what, goal)

    def profile(self, subscribers: int, path: Path) -> None:
        """Measure once more while sampling the app server's stacks; print its top functions."""
        spied = Sampling(self.servers.web.process.pid, path)
        sockets.run(replace(self._one_of(subscribers), sampling=spied))
        title = f"The app server at {self.writes_per_s:g} writes/s, by {path}: CPU time"
        table = Table(title=title, title_justify="left")
        for column in ("itself", "including callees"):
            table.add_column(column, justify="right")
        table.add_column("function", no_wrap=True)
        for function in sampling.functions(path.read_text())[:TOP]:
            table.add_row(f"{function.own:.1%}", f"{function.total:.1%}", function.name)
        console().print(table)

    def _one_of(self, subscribers: int) -> Crowd:
        return self._crowd("one", subscribers, 1, self.writes_per_s)

    def _crowd(self, collection: str, subscribers: int, fan_out: int, writes: float) -> Crowd:
        servers = self.servers
        return Crowd(
            servers.web.port,
            servers.key,
            collection,
            subscribers,
            fan_out,
            writes,
            self.seconds,
            {name: process.pid for name, process in servers.processes.items()},
            self.protocol,
        )


def _add_latencies(report: Report, name: str, what: str, result: SubscriberResults) -> None:
    achieved = result.written / result.writing_s
    report.add(f"{name}_per_s", achieved, "/s", f"{what}: achieved")
    report.add(f"{name}_expected", result.expected, "", "expected events")
    report.add(f"{name}_delivered", result.delivered, "", "events that came")
    n_lost = result.expected - result.delivered
    report.add(f"{name}_lost", n_lost, "", "missing events", "<= 0")
    report.add(f"{name}_disturbed", result.disturbances, "", "status, reset and end frames")
    for label, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("max", 1.0)):
        if result.latencies_ms:
            value = percentile(result.latencies_ms, share)
            report.add(f"{name}_{label}_ms", value, "ms", f"from the start of the write, {label}")
    if result.answers_ms:
        report.add(
            f"{name}_ack_p50_ms", percentile(result.answers_ms, 0.5), "ms", "write acknowledged"
        )
