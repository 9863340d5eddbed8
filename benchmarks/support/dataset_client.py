"""The client of datasets of the analytics benchmark."""

from __future__ import annotations

import http.client
import itertools
import json
import random
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.support.report import median
from benchmarks.support.uploads import Workload

ARROW = "application/vnd.apache.arrow.stream"
FRESHNESSES: tuple[object, ...] = ("any", 15, 10, 5, 0)
STAGES = ("ingested", "remapped", "sorted", "authority")
_PAUSE_S, _LOOK_S = 0.02, 0.5
#: A server closes connections that have been idle for five seconds; generating rows may take
#: longer.
_IDLE_S = 2.0
#: Points of a line over time.
_POINTS = 40


class Client:
    """One connection to the server, and one dataset."""

    def __init__(self, port: int, key: str, tenant: str, name: str = "") -> None:
        self._target = (port, key, tenant)
        self._name = name
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self._used_s = time.monotonic()
        self._headers = {"Authorization": f"Bearer {key}"}

    def again(self) -> Client:
        """Return another connection for the same dataset."""
        return Client(*self._target, self._name)

    def make_dataset(self, name: str, definition: Mapping[str, Any]) -> None:
        self._name = name
        body = json.dumps({"name": name, "retention_s": 60, **definition}).encode()
        self._call("POST", self._control(""), body, "application/json")

    def drop_dataset(self) -> None:
        self._call("DELETE", self._control(f"/{self._name}"))

    def call(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> Any:
        return self._call(method, f"/v1/datasets/{self._name}/{path}", body, kind)

    def upload(self, body: bytes) -> None:
        self.call("POST", "uploads", body, ARROW)

    def query(self, table: str, **query: object) -> Any:
        body = json.dumps({"table": table, **query}).encode()
        return self.call("POST", "query", body, "application/json")

    def _control(self, path: str) -> str:
        return f"/api/v1/tenants/{self._target[2]}/datasets{path}"

    def _call(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> Any:
        headers = {**self._headers, **({"Content-Type": kind} if kind else {})}
        if time.monotonic() - self._used_s > _IDLE_S:
            self._connection.close()
        self._used_s = time.monotonic()
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= 400:
            raise RuntimeError(content.decode())
        return json.loads(content) if content else None


class BackgroundLoop:
    """A thread that repeats a function while a block runs, and fails together with it."""

    def __init__(self, pause_s: float) -> None:
        self._pause_s = pause_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._failed: Exception | None = None
        self._begin = time.perf_counter()

    def do(self) -> None:
        """Do it once."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._begin = time.perf_counter()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        if kind is None:
            self.check()

    def check(self) -> None:
        """Raise the thread's exception, if any."""
        if self._failed is not None:
            raise self._failed

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                self.do()
                self._over.wait(self._pause_s)
        except Exception as failed:  # noqa: BLE001 -- told by the thread that waits for this one
            self._failed = failed


class FreshnessReader(BackgroundLoop):
    """Reads single rows at each freshness in turn, and records the time and duration."""

    def __init__(self, client: Client, workload: Workload, most: int) -> None:
        super().__init__(_PAUSE_S)
        self._client, self._workload, self._most = client, workload, most
        self._rng = random.Random(1)
        self._freshnesses = itertools.cycle(FRESHNESSES)
        self.spent_ms: dict[object, list[tuple[float, float]]] = {f: [] for f in FRESHNESSES}

    def do(self) -> None:
        freshness = next(self._freshnesses)
        key = self._workload.key_of(self._rng.randrange(self._most))
        begin = time.perf_counter()
        where = {self._workload.key: key}
        self._client.query(self._workload.queried_table, filter=where, freshness=freshness)
        end = time.perf_counter()
        self.spent_ms[freshness].append((begin - self._begin, (end - begin) * 1000))

    def over_time(self, freshness: object) -> list[tuple[float, float]]:
        """Return medians of time intervals."""
        spent = self.spent_ms[freshness]
        size = max(len(spent) // _POINTS, 1)
        parts = [spent[first : first + size] for first in range(0, len(spent), size)]
        return [(part[0][0], median([ms for _, ms in part])) for part in parts]


class StageWatcher(BackgroundLoop):
    """Records how many rows have reached each stage, and the age of the sorted data."""

    def __init__(self, client: Client, upload_rows: int) -> None:
        super().__init__(_LOOK_S)
        self._client, self._upload_rows = client, upload_rows
        self.rows: dict[str, list[tuple[float, float]]] = {stage: [] for stage in STAGES}
        #: The freshness with which a query would read no unsorted rows.
        self.staleness_s: list[tuple[float, float]] = []
        self.authority_state = 0

    def do(self) -> None:
        status = self._client.call("GET", "pipeline")
        if status["error"]:
            raise RuntimeError(f"the pipeline has stopped: {status['error']}")
        at_s = time.perf_counter() - self._begin
        for stage, state in _reached(status).items():
            if state:
                self.rows[stage].append((at_s, state * self._upload_rows))
        self.staleness_s.append((at_s, status["stages"]["sorted"]["lag_s"]))
        self.authority_state = status["authority_state"]


def _reached(status: Mapping[str, Any]) -> dict[str, int]:
    """Return the last upload that has reached each stage."""
    waiting = status["stages"]["unsorted"]["first"]
    remapped = status["state"] if waiting is None else waiting - 1
    unsorted = status["stages"].get("remapped", {}).get("first")
    return {
        "ingested": status["state"],
        "remapped": remapped if "remapped" in status["stages"] else 0,
        "sorted": remapped if unsorted is None else unsorted - 1,
        "authority": status["authority_state"],
    }


def at_once(
    clients: Sequence[Client], ask: Callable[[Client, random.Random], None], for_s: float
) -> float:
    """Query with concurrent clients for a while. Return the answers per second."""
    counts, failures = [0] * len(clients), []
    end = time.perf_counter() + for_s

    def run(number: int) -> None:
        rng = random.Random(number)
        try:
            while time.perf_counter() < end:
                ask(clients[number], rng)
                counts[number] += 1
        except Exception as failed:  # noqa: BLE001 -- raised by the thread that waits
            failures.append(failed)

    begin = time.perf_counter()
    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(clients))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return sum(counts) / (time.perf_counter() - begin)


def step_rates(port: int) -> dict[str, tuple[float, float]]:
    """Return for each kind of step its number of rows, and the total duration of its steps."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        text = answer.read().decode()
    rows: dict[str, float] = {}
    spent_s: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == "rillbase_pipeline_rows_total":
                rows[sample.labels["step"]] = sample.value
            elif sample.name == "rillbase_pipeline_step_duration_seconds_sum":
                spent_s[sample.labels["step"]] = sample.value
    return {step: (rows.get(step, 0.0), spent) for step, spent in spent_s.items()}
