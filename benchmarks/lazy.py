"""Analytics tables: how fast rows come in and reach the authority, and what freshness costs.

    python -m benchmarks.lazy [--workload tweets|events] [--rows 10000000] [--upload-rows 100000]
        [--peers postgres] [--workers spark|threads] [--quick]

Rows come as Arrow streams over HTTP from one client, which makes them beforehand, so that it only
sends; it shares the machine's cores with all servers. Ids of uploads lie across one another. While
rows are taken, point queries are asked at several freshnesses. The end is when the authority has
every row, and then its rows are counted. The peer is PostgreSQL with the same primary key: COPY of
the same rows, committed upload by upload.
"""

from __future__ import annotations

import argparse
import http.client
import io
import itertools
import json
import random
import threading
import time
from contextlib import ExitStack
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.csv

from benchmarks.support.installation import Installation, installation, python, service, web
from benchmarks.support.plot import Line, Plot
from benchmarks.support.posts import TABLES, as_stream, rows
from benchmarks.support.report import RESULTS, Report, median, percentile

_MAKE = """
import json, sys
import django; django.setup()
from analytics.models import Dataset
from foundation.scope import scoped
from tenants.models import Quota
from tests.make import make_key, make_tenant
made = make_tenant(plan="dedicated")
limits = {"requests_per_s": 1000000, "requests_burst": 1000000}
Quota(tenant=made.tenant, limits=limits).save(using="staff")
with scoped(tenant_id=made.tenant.id):
    Dataset.objects.create(name="bench", definition=sys.argv[1], retention_s=60)
print(json.dumps({"key": make_key(made.tenant, scopes=["analytics:read", "analytics:write"])}))
"""
#: So that the last rows, which are too few for a batch, do not wait for most of the time.
_SETTINGS = {"RILLBASE_ANALYTICS_BATCH_AGE_S": "1", "RILLBASE_ANALYTICS_AUTHORITY_AGE_S": "5"}
_ARROW = "application/vnd.apache.arrow.stream"
_FRESHNESSES: tuple[object, ...] = ("any", 15, 10, 5, 0)
_SUSTAINED = {"tweets": ">= 40000", "events": ">= 100000"}
_POINTS, _RANGES = 200, 50
_LOOK_S = 0.5
#: Streams that are made at once; more would not fit into memory.
_AHEAD = 16
_TYPES = {"int64": "bigint", "string": "text", "double": "double precision"}


class _Client:
    """One connection to the server."""

    def __init__(self, port: int, key: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
        self._headers = {"Authorization": f"Bearer {key}"}

    def call(self, method: str, path: str, body: bytes | None = None, kind: str = "") -> Any:
        headers = {**self._headers, **({"Content-Type": kind} if kind else {})}
        self._connection.request(method, f"/v1/datasets/bench/{path}", body, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status >= 400:
            raise RuntimeError(content.decode())
        return json.loads(content)

    def query(self, table: str, **asked: object) -> Any:
        body = json.dumps({"table": table, **asked}).encode()
        return self.call("POST", "query", body, "application/json")


class _Asking(threading.Thread):
    """Asks for single rows at each freshness in turn, and notes how long that took."""

    def __init__(self, client: _Client, table: str, most: int) -> None:
        super().__init__(daemon=True)
        self._client, self._table, self._most = client, table, most
        self.over = threading.Event()
        self.spent_ms: dict[object, list[float]] = {f: [] for f in _FRESHNESSES}
        self.failed: Exception | None = None

    def run(self) -> None:
        rng = random.Random(1)
        try:
            for freshness in itertools.cycle(_FRESHNESSES):
                if self.over.is_set():
                    return
                where = {"id": rng.randrange(self._most)}
                begin = time.perf_counter()
                self._client.query(self._table, filter=where, freshness=freshness)
                self.spent_ms[freshness].append((time.perf_counter() - begin) * 1000)
                time.sleep(0.02)
        except Exception as failed:  # noqa: BLE001 -- told by the thread that waits for this one
            self.failed = failed


def main() -> None:
    """Measure and report."""
    given = _arguments()
    report = Report("lazy", dict(vars(given)))
    with ExitStack() as opened:
        place = opened.enter_context(installation())
        definition = {"tables": {given.workload: {**TABLES[given.workload], "views": {}}}}
        key = json.loads(python(place, _MAKE, json.dumps(definition)))["key"]
        settings = {**_SETTINGS, "RILLBASE_ANALYTICS_WORKERS": given.workers}
        opened.enter_context(service(place, "pipeline", settings))
        server = opened.enter_context(web(place, "rillbase_server.asgi:application", {}))
        stage_rows = _measure_ours(report, given, server.port, key)
        _plot(given.workload, stage_rows)
        if "postgres" in given.peers:
            _measure_copy(report, given, place)
    report.finish()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="finish in about a minute")
    parser.add_argument("--workload", choices=sorted(TABLES), default="events")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--upload-rows", type=int, default=100_000)
    parser.add_argument("--peers", type=lambda t: t.split(",") if t else [], default=["postgres"])
    parser.add_argument("--workers", choices=["spark", "threads"], default="spark")
    given = parser.parse_args()
    given.rows = given.rows or (500_000 if given.quick else 10_000_000)
    return given


_Stages = dict[str, list[tuple[float, float]]]


def _measure_ours(report: Report, given: argparse.Namespace, port: int, key: str) -> _Stages:
    """Take all rows, follow them to the authority, then read there."""
    client, table = _Client(port, key), given.workload
    uploads = given.rows // given.upload_rows
    asking = _Asking(_Client(port, key), table, given.rows)
    asking.start()
    seen: _Stages = {stage: [] for stage in ("ingested", "sorted", "authority")}
    begin, sending_s = time.perf_counter(), 0.0
    for first in range(0, uploads, _AHEAD):
        numbers = range(first, min(first + _AHEAD, uploads))
        making = time.perf_counter()
        bodies = [as_stream(rows(table, n, given.upload_rows, uploads)) for n in numbers]
        # Making rows is no work of the servers', which go on meanwhile.
        begin += time.perf_counter() - making
        for body in bodies:
            sent = time.perf_counter()
            client.call("POST", f"uploads?table={table}", body, _ARROW)
            sending_s += time.perf_counter() - sent
        _look(client, seen, given.upload_rows, time.perf_counter() - begin)
    while _look(client, seen, given.upload_rows, time.perf_counter() - begin) < uploads:
        time.sleep(_LOOK_S)
    whole_s = time.perf_counter() - begin
    asking.over.set()
    asking.join()
    if asking.failed is not None:
        raise asking.failed
    counted = client.query(table, aggregates={"n": {"op": "count"}}, freshness="any")["rows"]
    if counted != [{"n": uploads * given.upload_rows}]:
        raise RuntimeError(f"rows are missing or doubled: {counted}")
    taken = uploads * given.upload_rows
    report.add("ingest_rows_per_s", taken / sending_s, "rows/s", "taken, durable and seen",
               ">= 150000" if table == "events" else "")  # fmt: skip
    report.add("sustained_rows_per_s", taken / whole_s, "rows/s", "through to the authority",
               _SUSTAINED[table])  # fmt: skip
    for freshness, spent in asking.spent_ms.items():
        if spent:
            name = f"freshness_{freshness}_p50_ms"
            report.add(name, median(spent), "ms", "a point query while rows come")
    _measure_reads(report, client, table, taken)
    return seen


def _look(client: _Client, seen: _Stages, upload_rows: int, at_s: float) -> int:
    """Note how many rows are in which stage. Return the state of the authority."""
    told = client.call("GET", "pipeline")
    waiting = told["stages"]["unsorted"]["first"]
    is_sorted = told["state"] if waiting is None else waiting - 1
    for stage, state in (
        ("ingested", told["state"]),
        ("sorted", is_sorted),
        ("authority", told["authority_state"]),
    ):
        if state:
            seen[stage].append((max(at_s, 0.1), state * upload_rows))
    reached: int = told["authority_state"]
    return reached


def _measure_reads(report: Report, client: _Client, table: str, taken: int) -> None:
    rng, spans = random.Random(2), {"point": (_POINTS, 1), "range": (_RANGES, taken // 1000)}
    wants = {"point": "<= 30", "range": "<= 150"}
    for name, (count, width) in spans.items():
        spent = []
        for _ in range(count):
            low = rng.randrange(taken - width)
            where = {"id": {"$gte": low, "$lt": low + width}}
            begin = time.perf_counter()
            asked = {"columns": ["id"], "filter": where, "limit": 10_000, "freshness": "any"}
            found = client.query(table, **asked)["rows"]
            spent.append((time.perf_counter() - begin) * 1000)
            if len(found) != min(width, 10_000):
                raise RuntimeError(f"{len(found)} rows instead of {width}")
        what = "a row" if name == "point" else "0.1 % of the rows, their ids"
        report.add(f"{name}_p50_ms", median(spent), "ms", f"of the authority, {what}", wants[name])
        report.add(f"{name}_p99_ms", percentile(spent, 0.99), "ms", "the same")


def _measure_copy(report: Report, given: argparse.Namespace, place: Installation) -> None:
    """COPY the same rows into PostgreSQL, a transaction for each upload."""
    table, uploads = TABLES[given.workload], given.rows // given.upload_rows
    columns = [
        f"{name} {_TYPES.get(kind, 'timestamptz')}" for name, kind in table["columns"].items()
    ]
    spent_s = 0.0
    with psycopg.connect(place.environment["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(f"CREATE TABLE peer ({', '.join(columns)}, PRIMARY KEY (id))")
        for number in range(uploads):
            body = _as_csv(rows(given.workload, number, given.upload_rows, uploads))
            begin = time.perf_counter()
            with connection.cursor().copy("COPY peer FROM STDIN (FORMAT csv)") as copy:
                copy.write(body)
            spent_s += time.perf_counter() - begin
    rate = uploads * given.upload_rows / spent_s
    report.add("copy_rows_per_s", rate, "rows/s", "PostgreSQL: COPY with the same primary key")
    ours = next(f.value for f in report.figures if f.name == "sustained_rows_per_s")
    report.add("by_copy", ours / rate, "x", "sustained rate by COPY's", ">= 3")


def _as_csv(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pyarrow.csv.write_csv(table, sink, pyarrow.csv.WriteOptions(include_header=False))
    return sink.getvalue()


def _plot(workload: str, seen: _Stages) -> None:
    lines = [Line(stage, points) for stage, points in seen.items() if points]
    if lines:
        title = f"{workload}: rows that have come to each stage"
        Plot(title, "seconds", "rows", lines).save(RESULTS / f"lazy-{workload}-stages.svg")


if __name__ == "__main__":
    main()
