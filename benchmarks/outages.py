"""How long clients wait when a service of `make run` is killed, or hangs.

    PYTHONPATH=sdk/python python -m benchmarks.outages [--services web,postgres]

Starts a complete installation, with the grid as processes. One after the other, each service is
killed, and suspended with all of its processes, while a client inserts ten documents a second and
sends ten publications a second to a topic. It repeats what fails until it succeeds. The SDK has a
live query of these documents. No notification may be missing.
"""

from __future__ import annotations

import argparse
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import urlsplit

import psutil

from benchmarks.support.call_attack import Call, send
from benchmarks.support.report import Report
from rillbase import Client
from tests.launcher_command import reachable_directory
from tests.launcher_process import LauncherDirectory
from tests.waiting import wait_until

SERVICES = ("web", "worker", "background", "grid", "valkey", "node", "postgres")
COLLECTION, TOPIC = "outages", "outages"
PERIOD_S, TIMEOUT_S = 0.1, 2.0
#: Before and after an outage.
QUIET_S = 5.0
RECOVERY_TIMEOUT_S = 120.0
# A standby is loaded half a minute after its service is ready.
STANDBY_S = {"web": 30.0}


@dataclass
class Calls:
    """Calls of one kind at a fixed rate, each repeated until it succeeds."""

    url: str
    key: str
    #: Return the call with a number.
    of: Callable[[int], Call]
    #: By number.
    succeeded_s: dict[int, float] = field(default_factory=dict)
    longest_s: float = 0.0

    def run(self, ending: threading.Event) -> None:
        due_s = time.monotonic()
        for number in range(1_000_000):
            if ending.is_set():
                return
            call = self.of(number)
            while not _succeeds(self.url, self.key, call):
                time.sleep(PERIOD_S)
            now_s = time.monotonic()
            self.succeeded_s[number] = now_s
            self.longest_s = max(self.longest_s, now_s - due_s)
            # A delayed call does not delay the following ones as well.
            due_s = max(due_s + PERIOD_S, now_s)
            time.sleep(max(0.0, due_s - time.monotonic()))


@dataclass
class Notified:
    """When a live query showed each document first."""

    first_s: dict[int, float] = field(default_factory=dict)

    def run(self, url: str, key: str, run: str, ending: threading.Event) -> None:
        with Client(url, key=key) as client:
            for snapshot in client.collection(COLLECTION).where("run", "==", run).watch():
                now_s = time.monotonic()
                for document in snapshot.documents:
                    self.first_s.setdefault(int(document["n"]), now_s)
                if ending.is_set():
                    return


@dataclass(frozen=True, slots=True)
class Outage:
    """What clients noticed."""

    write_s: float
    publication_s: float
    notification_s: float
    missed: int


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--services", default=",".join(SERVICES), help="in this order")
    services = parser.parse_args().services.split(",")
    report = Report("outages", {"services": services, "period_s": PERIOD_S})
    with reachable_directory() as directory:
        launcher = LauncherDirectory(directory)
        with launcher.up(RILLBASE_GRID="processes") as running:
            _create(running.ready)
            _await_ready(launcher)
            for service in services:
                for kind in ("killed", "hung"):
                    time.sleep(STANDBY_S.get(service, 0.0))
                    outage = _measure(launcher, running.ready, service, kind)
                    _add(report, service, kind, outage)
    report.finish()


def _add(report: Report, service: str, kind: str, outage: Outage) -> None:
    name = f"{service}_{kind}"
    report.add(f"{name}_write_s", outage.write_s, "s", "longest time until a write succeeded")
    what = "longest time until a publication succeeded"
    report.add(f"{name}_publication_s", outage.publication_s, "s", what)
    what = "longest time from a write's success to its notification"
    report.add(f"{name}_notification_s", outage.notification_s, "s", what)
    report.add(f"{name}_missed", outage.missed, "", "writes without a notification", "<= 0")


def _create(ready: dict[str, str]) -> None:
    for kind, definition in (("collections", {"name": COLLECTION}), ("topics", {"name": TOPIC})):
        path = f"/api/v1/tenants/{ready['tenant']}/{kind}"
        if not _succeeds(ready["url"], ready["api_key"], Call(path, dict(definition))):
            raise RuntimeError(f"{path} failed")


def _measure(launcher: LauncherDirectory, ready: dict[str, str], service: str, kind: str) -> Outage:
    run = f"{service}-{kind}"

    def insert(number: int) -> Call:
        document = {"_id": f"{run}-{number}", "run": run, "n": number}
        return Call(f"/v1/collections/{COLLECTION}/documents", document)

    def publish(number: int) -> Call:
        publication = {"id": "1", "publication_id": f"{run}-{number}", "expires_in_s": 60}
        return Call(f"/v1/topics/{TOPIC}/publications", publication)

    writes = Calls(ready["url"], ready["api_key"], insert)
    publications = Calls(ready["url"], ready["api_key"], publish)
    notified = Notified()
    with _threads(
        writes.run,
        publications.run,
        lambda ending: notified.run(ready["url"], ready["api_key"], run, ending),
    ):
        time.sleep(QUIET_S)
        state = launcher.services()[service]
        _interrupt(int(state["pid"]), kind)
        _await_recovery(launcher, service, int(state["restarts"]))
        time.sleep(QUIET_S)
        expected = set(writes.succeeded_s)
        until_s = time.monotonic() + RECOVERY_TIMEOUT_S
        while not expected <= notified.first_s.keys() and time.monotonic() < until_s:
            time.sleep(PERIOD_S)
    shown = expected & notified.first_s.keys()
    delay_s = max(notified.first_s[number] - writes.succeeded_s[number] for number in shown)
    return Outage(writes.longest_s, publications.longest_s, delay_s, len(expected - shown))


def _succeeds(url: str, key: str, call: Call) -> bool:
    status = send(urlsplit(url).port or 80, key, call, TIMEOUT_S)
    # A repeated insert may have been executed before.
    return 0 < status < HTTPStatus.BAD_REQUEST or status == HTTPStatus.CONFLICT


@contextmanager
def _threads(*runs: Callable[[threading.Event], None]) -> Iterator[None]:
    ending = threading.Event()
    threads = [threading.Thread(target=run, args=(ending,), daemon=True) for run in runs]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        # Each thread ends with its next response or notification.
        ending.set()


def _interrupt(pid: int, kind: str) -> None:
    leader = psutil.Process(pid)
    if kind == "killed":
        leader.send_signal(signal.SIGKILL)
        return
    for process in (leader, *leader.children(recursive=True)):
        process.suspend()


def _await_recovery(launcher: LauncherDirectory, service: str, restarts: int) -> None:
    wait_until(
        lambda: launcher.services()[service]["restarts"] > restarts,
        what="a restart",
        timeout_s=RECOVERY_TIMEOUT_S,
    )
    _await_ready(launcher)


def _await_ready(launcher: LauncherDirectory) -> None:
    def are_ready() -> bool:
        services = launcher.services()
        return all(services[name]["state"] == "ready" for name in SERVICES)

    wait_until(are_ready, what="all services", timeout_s=RECOVERY_TIMEOUT_S)


if __name__ == "__main__":
    main()
