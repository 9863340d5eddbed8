"""SQL over datasets, beside DuckDB in this process and PostgreSQL on the same rows.

    python -m benchmarks.sql [--scale 1] [--rounds 5] [--peers postgres,spark] [--nice 0] [--quick]

Tables like those of TPC-H are uploaded. Nine tenths of the orders are merged into the authority;
then the pipeline is stopped, and the last tenth is uploaded, which stays unsorted. Each statement
runs over HTTP at freshness `any` and at freshness 0, in turns with DuckDB in this process: on the
same Parquet files, and on these together with the last tenth as Parquet. Both have two threads. All
answers are compared. The figures are medians. With `--peers spark`, the same statements also run on
Spark, as our second engine, in turns with DuckDB as our first.

Workers have the lowest priority, so that on a busy machine they wait for everything else.
`--nice 19` gives it to this process and its DuckDB too, which makes the times comparable there.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

import duckdb
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.peers.analytics_stores import postgres
from benchmarks.support.dataset_client import Client
from benchmarks.support.installation import Installation, installation, python, service, web
from benchmarks.support.report import Report, median
from benchmarks.support.tpch import DEFINITION, STATEMENTS, Generator
from benchmarks.support.uploads import stream

_MAKE = """
import json
import django; django.setup()
from tests.make import make_key, make_tenant
from tenants.models import Quota
account = make_tenant(plan="dedicated")
limits = {"requests_per_s": 1000000, "requests_burst": 1000000, "dataset_bytes": 10**12}
Quota(tenant=account.tenant, limits=limits).save(using="staff")
scopes = ["analytics:read", "analytics:write", "admin"]
print(json.dumps({"key": make_key(account.tenant, scopes=scopes), "tenant": account.slug}))
"""
_FILES = """
import json
import django; django.setup()
from analytics.models import StoredFile
from analytics.locations import folder_of
files = StoredFile.unscoped.using("relay").filter(stage="authority", until=None, view="")
print(json.dumps([[f.table, str(folder_of(f.dataset_id) / f.path)] for f in files]))
"""
_SETTINGS = {
    "RILLBASE_ANALYTICS_WORKERS": "threads",
    "RILLBASE_ANALYTICS_BATCH_AGE_S": "1",
    "RILLBASE_ANALYTICS_AUTHORITY_AGE_S": "1",
}
_THREADS = 2
_UPLOAD_ORDERS = 50_000
_UNSORTED = 10
_LOOK_S = 0.2
Statement = Callable[[str], list[Any]]


def main() -> None:
    """Measure and report."""
    arguments = _arguments()
    report = Report("sql", vars(arguments))
    generator = Generator(arguments.scale)
    merged = generator.orders - generator.orders // _UNSORTED
    with ExitStack() as opened:
        place = opened.enter_context(installation())
        prepared = json.loads(python(place, _MAKE))
        server = opened.enter_context(web(place, "rillbase_server.asgi:application", {}))
        client = Client(server.port, prepared["key"], prepared["tenant"])
        client.make_dataset("tpch", DEFINITION)
        _merge(place, client, generator, merged)
        files = _files(place)
        os.nice(arguments.nice)
        _measure_overhead(report, client, server.process.pid, arguments.rounds)
        with _duck(files) as duck:
            _compare(report, "any", _over_http(client, "any"), duck, arguments.rounds)
        if "spark" in arguments.peers:
            with service(place, "pipeline", {"RILLBASE_ANALYTICS_WORKERS": "spark"}):
                _measure_spark(report, client, arguments.rounds)
        last = list(generator.uploads(merged, generator.orders, _UPLOAD_ORDERS))
        for upload in last:
            client.upload(_body(upload))
        with _duck(_with(files, last, place.directory)) as duck:
            _compare(report, "fresh", _over_http(client, 0), duck, arguments.rounds)
        if "postgres" in arguments.peers:
            _measure_postgres(report, place, generator, arguments)
    report.finish()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="finish in some minutes")
    parser.add_argument("--scale", type=float)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--nice", type=int, default=0, help="priority of DuckDB in this process")
    parser.add_argument("--peers", type=lambda text: text.split(","), default=["postgres", "spark"])
    arguments = parser.parse_args()
    arguments.scale = arguments.scale or (0.1 if arguments.quick else 1.0)
    return arguments


def _merge(place: Installation, client: Client, generator: Generator, orders: int) -> None:
    """Upload all small tables and so many orders, and wait until the authority has them."""
    client.upload(_body(generator.small_tables()))
    for upload in generator.uploads(0, orders, _UPLOAD_ORDERS):
        client.upload(_body(upload))
    with service(place, "pipeline", _SETTINGS):
        while (pipeline := client.call("GET", "pipeline"))["authority_state"] < pipeline["state"]:
            time.sleep(_LOOK_S)


def _body(upload: Mapping[str, pa.Table]) -> bytes:
    return b"".join(stream(name, table) for name, table in upload.items())


def _files(place: Installation) -> dict[str, list[str]]:
    """Return the files of the authority by table."""
    files: dict[str, list[str]] = {}
    for table, path in json.loads(python(place, _FILES)):
        files.setdefault(table, []).append(path)
    return files


def _with(
    files: Mapping[str, list[str]], uploads: list[dict[str, pa.Table]], directory: Path
) -> dict[str, list[str]]:
    """Return files with those of more uploads."""
    added = {table: list(paths) for table, paths in files.items()}
    for number, upload in enumerate(uploads):
        for table, rows in upload.items():
            path = directory / f"last-{number}-{table}.parquet"
            pq.write_table(rows, path, compression="zstd", compression_level=1)
            added[table].append(str(path))
    return added


@contextmanager
def _duck(files: Mapping[str, list[str]]) -> Iterator[Statement]:
    """Open DuckDB in this process on files."""
    with closing(duckdb.connect(config={"threads": _THREADS})) as connection:
        for table, paths in files.items():
            connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet({paths})")
        yield lambda statement: connection.execute(statement).fetchall()


def _over_http(client: Client, freshness: object, engine: str = "duckdb") -> Statement:
    def run(statement: str) -> list[Any]:
        body = {"sql": statement, "freshness": freshness, "timeout": 300, "engine": engine}
        answer = client.call("POST", "sql", json.dumps(body).encode(), "application/json")
        return [tuple(row.values()) for row in answer["rows"]]

    return run


def _measure_overhead(report: Report, client: Client, server: int, rounds: int) -> None:
    run, count = _over_http(client, "any"), rounds * 4
    run("SELECT 1")
    before = _cpu_ms(server)
    spent = [_timed(run, "SELECT 1")[0] for _ in range(count)]
    report.add("overhead_ms", median(spent), "ms", "SELECT 1 over HTTP", "<= 20")
    used = (_cpu_ms(server) - before) / count
    what = "CPU time of the server, the template and the worker for it, whatever the load"
    report.add("overhead_cpu_ms", used, "ms", what, "<= 20")


def _cpu_ms(server: int) -> float:
    """Return the CPU time of the web server and of its workers, which have ended, so far."""
    process = psutil.Process(server)
    times = [one.cpu_times() for one in (process, *process.children(recursive=True))]
    return sum(t.user + t.system + t.children_user + t.children_system for t in times) * 1000


def _compare(report: Report, name: str, ours: Statement, duck: Statement, rounds: int) -> None:
    """Run each statement here and there in turns."""
    ratios, excesses = [], []
    bound = 1.3 if name == "any" else 2.0
    for number, statement in STATEMENTS.items():
        ours_ms, duck_ms = [], []
        for _ in range(rounds + 1):
            spent, rows = _timed(ours, statement)
            spent_there, expected = _timed(duck, statement)
            _check(number, rows, expected)
            ours_ms.append(spent)
            duck_ms.append(spent_there)
        here, there = median(ours_ms[1:]), median(duck_ms[1:])
        ratios.append(here / there)
        excesses.append(here - bound * there)
        report.add(f"{name}_{number}_ms", here, "ms", f"DuckDB in this process: {there:.1f} ms")
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    want = "<= 20" if name == "any" else ""
    report.add(f"{name}_ratio", mean, "x", "geometric mean of all statements", f"<= {bound}")
    what = f"the most by which a statement exceeds {bound} x DuckDB"
    report.add(f"{name}_worst_excess_ms", max(excesses), "ms", what, want)


def _measure_spark(report: Report, client: Client, rounds: int) -> None:
    """Run each statement on both of our engines in turns."""
    on_spark, on_duckdb = (_over_http(client, "any", engine) for engine in ("spark", "duckdb"))
    report.add("spark_start_ms", _timed(on_spark, "SELECT 1")[0], "ms", "the first statement")
    ratios = []
    for number, statement in STATEMENTS.items():
        spark_ms, duckdb_ms = [], []
        for _ in range(max(rounds // 2, 1) + 1):
            try:
                spent, rows = _timed(on_spark, statement)
            except RuntimeError as error:
                if "on Spark" not in str(error):
                    raise
                report.add(f"spark_{number}_unavailable", 1, "", str(error)[:200])
                break
            spent_there, expected = _timed(on_duckdb, statement)
            _check(number, rows, expected)
            spark_ms.append(spent)
            duckdb_ms.append(spent_there)
        else:
            here, there = median(spark_ms[1:]), median(duckdb_ms[1:])
            ratios.append(here / there)
            report.add(f"spark_{number}_ms", here, "ms", f"on DuckDB: {there:.1f} ms")
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    report.add("spark_ratio", mean, "x", "Spark / DuckDB, geometric mean")


def _timed(run: Statement, statement: str) -> tuple[float, list[Any]]:
    begin = time.perf_counter()
    rows = run(statement)
    return (time.perf_counter() - begin) * 1000, rows


def _check(number: str, actual: list[Any], expected: list[Any]) -> None:
    """Raise unless two results are equal, up to the order of additions."""
    same = len(actual) == len(expected) and all(
        _is_same(a, b)
        for one, other in zip(actual, expected, strict=True)
        for a, b in zip(one, other, strict=True)
    )
    if not same:
        raise RuntimeError(f"{number}: {actual[:3]} instead of {expected[:3]}")


def _is_same(actual: Any, expected: Any) -> bool:
    if isinstance(expected, float):
        return math.isclose(actual, expected, rel_tol=1e-9)
    return bool(actual == expected or actual == str(expected))


def _measure_postgres(
    report: Report, place: Installation, generator: Generator, arguments: argparse.Namespace
) -> None:
    """Load the same rows into PostgreSQL, with the same keys."""
    with postgres(place.directory / "peer", 1024, DEFINITION, by_copy=True) as store:
        store.take(generator.small_tables())
        for upload in generator.uploads(0, generator.orders, _UPLOAD_ORDERS):
            store.take(upload)
        connection = store._connection
        connection.execute("ANALYZE")
        for number, statement in STATEMENTS.items():
            spent = []
            for _ in range(max(arguments.rounds // 2, 1) + 1):
                begin = time.perf_counter()
                connection.execute(statement.encode()).fetchall()
                spent.append((time.perf_counter() - begin) * 1000)
            report.add(f"postgres_{number}_ms", median(spent[1:]), "ms", "PostgreSQL, all rows")


if __name__ == "__main__":
    main()
