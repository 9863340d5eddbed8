"""Aggregates under faults: a view equals the GROUP BY of its collection, and an event counts once.

Writers change documents at random and add events, retrying each event under its name until it is
acknowledged, while one part of the installation after another is killed, paused or emptied. A
reader queries each snapshot in two ways, whose results must agree. At quiet points nobody writes:
then the view has to come to show what grouping the documents shows, and the events have to sum up
to what was acknowledged.

A run prints its seed and its story; RILLBASE_CHAOS_SEED repeats the choices of one, and
RILLBASE_CHAOS_KILLS says how many kills the long one takes.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
import redis
import requests

from documents.backend import Backend
from tests.aggregates.grouping import BY_KIND, FILTER, comparable, document, grouped
from tests.chaos.live.report import RunReport
from tests.chaos.live.writers import Gate
from tests.launcher_process import LauncherDirectory, RunningLauncher
from tests.waiting import wait_until

KILLS = int(os.environ.get("RILLBASE_CHAOS_KILLS", "60"))
SERVICES = ("background", "node", "postgres", "valkey", "web")
VICTIMS = (*SERVICES, "empty valkey", "pause views", "rebuild", "background", "node")
WRITERS, DOCUMENTS = 3, 30
#: The pause between two kills.
WRITES = 20
KILLS_BETWEEN_QUIET_POINTS = 4
CALL_TIMEOUT_S, RECOVERY_S = 60.0, 240.0
#: Longer than after-images are kept, so that missed ones are gone.
PAUSE_S = 12.0
GOOD, REFUSED, CONNECTION_ERRORS = 300, 500, requests.RequestException
MOVES: dict[str, Any] = {
    "name": "moves",
    "dimensions": ["who"],
    "measures": {"n": {"op": "count"}, "sum": {"op": "sum", "field": "by", "type": "int"}},
    "rollups": [[]],
}


@pytest.mark.long
@pytest.mark.timeout(KILLS * 120)
@pytest.mark.parametrize("backend", [*Backend], ids=str)
def test_views_and_events_are_exact_whatever_is_killed(
    launcher_directory: LauncherDirectory, backend: Backend
) -> None:
    report = RunReport(int(os.environ.get("RILLBASE_CHAOS_SEED", secrets.randbelow(10**6))))
    rng = Random(report.seed)
    victims = [*dict.fromkeys(VICTIMS), *rng.choices(VICTIMS, k=KILLS)][:KILLS]
    try:
        with launcher_directory.up(
            RILLBASE_GRID="processes", RILLBASE_DEFAULT_PLAN="dedicated"
        ) as launched:
            run = Run(launcher_directory, launched, report, backend)
            with run.busy():
                for number, victim in enumerate(victims, start=1):
                    run.write_more()
                    run.disrupt(victim)
                    if number % KILLS_BETWEEN_QUIET_POINTS == 0:
                        run.settle()
                run.write_more()
                run.settle()
    finally:
        report.end()
    assert not report.faults, report.faults


class Caller:
    """Calls the server for one thread."""

    def __init__(self, launched: RunningLauncher) -> None:
        self._url = launched.ready["url"]
        self._session = requests.Session()
        self._session.headers["Authorization"] = f"Bearer {launched.ready['api_key']}"

    def ask(self, method: str, path: str, body: Any = None) -> requests.Response | None:
        """Return the response; None while the server or a service behind it is unavailable."""
        try:
            answer = self._session.request(
                method, self._url + path, json=body, timeout=CALL_TIMEOUT_S
            )
        except CONNECTION_ERRORS:
            return None
        return None if answer.status_code in (408, 429) or answer.status_code >= REFUSED else answer

    def post(self, path: str, body: object) -> requests.Response | None:
        return self.ask("POST", path, body)

    def rows(self, aggregate: str, **query_body: object) -> dict[str, Any] | None:
        """Return the rows of an aggregate; None while they are unavailable."""
        answer = self.post(f"/v1/aggregates/{aggregate}/query", query_body)
        if answer is None or not answer.ok:
            return None
        body: dict[str, Any] = answer.json()
        return body


class Writer(threading.Thread):
    """Changes documents, and adds events until each is acknowledged."""

    def __init__(self, number: int, caller: Caller, gate: Gate, report: RunReport) -> None:
        super().__init__(name=f"writer-{number}", daemon=True)
        self.sum = self.count = 0
        self._rng = Random(f"{report.seed} writer {number}")
        self._caller, self._gate, self._report = caller, gate, report

    def run(self) -> None:
        while self._gate.wait_open():
            self._change()
            self._move()
            self._report.count("rounds")

    def _change(self) -> None:
        key = self._rng.randrange(DOCUMENTS)
        path = f"/v1/collections/things/documents/~{key}"
        match self._rng.randrange(4):
            case 0:
                self._caller.ask("DELETE", path)
            case 1:
                self._caller.ask("PATCH", path, {"$inc": {"n": self._rng.randrange(-9, 9)}})
            case _:
                self._caller.ask("PUT", path, document(self._rng, key))

    def _move(self) -> None:
        amount = self._rng.randrange(-99, 99)
        name = f"{self.name}-{self.count}"
        event = {"event_id": name, "who": self.name, "by": amount}
        while not self._gate.over.is_set():
            answer = self._caller.post("/v1/aggregates/moves/events", event)
            if answer is None:
                self._gate.over.wait(0.1)
                continue
            if answer.status_code >= GOOD:
                self._report.fault(self.name, f"{answer.status_code} {answer.text}")
            break
        self.sum += amount
        self.count += 1


class Reader(threading.Thread):
    """Queries one snapshot by kind and in total."""

    def __init__(self, caller: Caller, over: threading.Event, report: RunReport) -> None:
        super().__init__(name="reader", daemon=True)
        self._caller, self._over, self._report = caller, over, report

    def run(self) -> None:
        while not self._over.wait(0.05):
            first = self._caller.rows("by_kind", group_by=["kind"], measures=["count", "total"])
            if first is None:
                continue
            whole = self._caller.rows(
                "by_kind", group_by=[], measures=["count", "total"], snapshot=first["snapshot"]
            )
            if whole is None:
                continue
            kinds = {name: sum(row[name] for row in first["rows"]) for name in ("count", "total")}
            if (whole["rows"] or [{"count": 0, "total": 0}])[0] != kinds:
                self._report.fault("reader", f"{first} is not {whole}")
            self._report.count("looks")


class Run:
    """All writers and readers of an installation."""

    def __init__(
        self,
        launcher_directory: LauncherDirectory,
        launched: RunningLauncher,
        report: RunReport,
        backend: Backend,
    ) -> None:
        self._place, self._report = launcher_directory, report
        self._gate = Gate(WRITERS)
        self._caller = Caller(launched)
        self._control = f"/api/v1/tenants/{launched.ready['tenant']}"
        view = {**BY_KIND, "source": {"collection": "things", "filter": FILTER}}
        definitions: list[tuple[str, object]] = [
            ("collections", {"name": "things", "backend": backend}),
            ("aggregates", view),
            ("aggregates", MOVES),
        ]
        for kind, body in definitions:
            answer = self._caller.post(f"{self._control}/{kind}", body)
            assert answer is not None, kind
            assert answer.ok, answer.text
        self._writers = [
            Writer(number, Caller(launched), self._gate, report) for number in range(WRITERS)
        ]
        self._reader = Reader(Caller(launched), self._gate.over, report)
        self._hurts: dict[str, Callable[[], None]] = {
            "empty valkey": self._empty_valkey,
            "pause views": self._pause_views,
            "rebuild": self._rebuild,
        }

    @contextmanager
    def busy(self) -> Iterator[None]:
        for one in (*self._writers, self._reader):
            one.start()
        try:
            yield
        finally:
            self._gate.end()

    def write_more(self) -> None:
        """Wait until that many more writes are acknowledged."""
        target = self._report.counts["rounds"] + WRITES
        wait_until(
            lambda: self._report.counts["rounds"] >= target or bool(self._report.faults),
            what="writes to go on",
            timeout_s=RECOVERY_S,
        )
        assert not self._report.faults, self._report.faults

    def disrupt(self, victim: str) -> None:
        self._report.record("killer", victim)
        self._report.count(f"kill: {victim}")
        # A process that was just disrupted may not be running yet.
        with contextlib.suppress(ProcessLookupError, redis.RedisError):
            self._hurts.get(victim, lambda: self._signal(victim, signal.SIGKILL))()

    def _signal(self, service: str, number: signal.Signals) -> None:
        pid = self._place.services()[service]["pid"]
        if pid is None:
            raise ProcessLookupError(service)
        os.kill(int(pid), number)

    def _empty_valkey(self) -> None:
        with self._place.valkey() as client:
            client.flushall()

    def _pause_views(self) -> None:
        self._signal("background", signal.SIGSTOP)
        try:
            self._gate.over.wait(PAUSE_S)
        finally:
            self._signal("background", signal.SIGCONT)

    def _rebuild(self) -> None:
        self._caller.post(f"{self._control}/aggregates/by_kind:rebuild", None)

    def settle(self) -> None:
        """Stop all writes, and wait until all results are correct."""
        self._gate.close()
        self._report.record("quiet", "no writer writes")
        counted = sum(one.count for one in self._writers), sum(one.sum for one in self._writers)
        for what, holds in (
            ("the view to show what there is", self._view_holds),
            ("the events to be there", lambda: self._moves() == counted),
        ):
            try:
                wait_until(holds, what=what, timeout_s=RECOVERY_S)
            except AssertionError:
                shown = self._caller.rows("by_kind", group_by=["kind"], snapshot="fresh")
                self._report.record("quiet", f"{shown} and {self._moves()} for {counted}")
                raise
        self._report.count("quiet points")
        self._gate.open()

    def _view_holds(self) -> bool:
        documents = self._documents()
        shown = self._caller.rows("by_kind", group_by=["kind"], snapshot="fresh")
        if documents is None or shown is None:
            return False
        return comparable(shown["rows"]) == grouped(documents)

    def _documents(self) -> Sequence[dict[str, Any]] | None:
        answer = self._caller.post("/v1/collections/things/query", {"limit": 1_000})
        if answer is None or not answer.ok:
            return None
        return [item["document"] for item in answer.json()["items"]]

    def _moves(self) -> tuple[int, int] | None:
        rows = self._caller.rows("moves", group_by=[], snapshot="fresh")
        if rows is None:
            return None
        row = (rows["rows"] or [{"n": 0, "sum": 0}])[0]
        return row["n"], row["sum"]
