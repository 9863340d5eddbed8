"""Analytics tables: the rates of uploads and of the authority, and the cost of freshness.

    python -m benchmarks.lazy [--workload tweets|events|indexed|complex] [--rows 10000000]
        [--upload-rows 100000] [--peers postgres,duckdb] [--peer-rows 1000000]
        [--peer-cache-mb 16] [--workers spark|threads] [--sweep scu,clients] [--kills 8]
        [--plots DIRECTORY] [--quick]

One client sends rows as Arrow streams over HTTP, and generates the next ones while it sends; it
shares the machine's cores with all servers. The key ranges of uploads overlap. During the uploads,
single rows are read at several freshnesses. The run ends when the authority has every row, and the
rows are counted; the sustained rate is all rows divided by the whole time. The rate of a stage is
its number of rows divided by the time for which its steps ran, concurrently with everything else.

Peers load the same uploads, one transaction each: PostgreSQL by COPY and by INSERT of a thousand
rows at a time, and DuckDB in this process, all with the same keys and an index for each view.
PostgreSQL has a separate server, whose cache is smaller than its tables and than their indexes. The
kernel's cache of its files cannot be limited here, so a miss is usually copied, not read from disk.

`--kills` uploads pairs of rows whose sum is zero, reads them at any freshness, and meanwhile kills
workers, Spark's driver and the coordinator, one after the other. `--sweep scu` repeats the upload
with several batch sizes, `--sweep clients` reads rows and ranges of the authority with 1, 2, 4, …
concurrent clients.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.peers.analytics_stores import Uploads, duck_db, postgres, rate
from benchmarks.support.dataset_client import (
    FRESHNESSES,
    Client,
    FreshnessReader,
    StageWatcher,
    at_once,
    step_rates,
)
from benchmarks.support.dataset_kills import KillResults, kill_again_and_again
from benchmarks.support.installation import (
    Installation,
    Web,
    installation,
    python,
    service,
    web,
)
from benchmarks.support.plot import Line, Plot, thinned
from benchmarks.support.report import RESULTS, Report, median, percentile
from benchmarks.support.uploads import WORKLOADS, Workload

_MAKE = """
import json, sys
import django; django.setup()
from tests.make import make_key, make_tenant
from tenants.models import Quota
account = make_tenant(plan="dedicated")
limits = {"requests_per_s": 1000000, "requests_burst": 1000000, "dataset_bytes": 10**12}
Quota(tenant=account.tenant, limits=limits).save(using="staff")
scopes = ["analytics:read", "analytics:write", "admin"]
print(json.dumps({"key": make_key(account.tenant, scopes=scopes), "tenant": account.slug}))
"""
#: Short, so that the last rows, which are too few for a batch, do not wait most of the time.
_SETTINGS = {"RILLBASE_ANALYTICS_BATCH_AGE_S": "1", "RILLBASE_ANALYTICS_AUTHORITY_AGE_S": "10"}
#: Short, so that every stage runs often.
_KILLED = {"RILLBASE_ANALYTICS_BATCH_AGE_S": "0", "RILLBASE_ANALYTICS_AUTHORITY_AGE_S": "3"}
_SWEPT_BYTES = (1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20)
_SWEPT_CLIENTS = (1, 2, 4, 8, 16)
_SWEPT_S = 3.0
_POINTS, _RANGES = 200, 50
_WARM_ROWS = 1_000
#: Uploads that are generated in advance; more would not fit into memory.
_AHEAD = 4
_LOOK_S = 0.05


@dataclass
class Run:
    """One dataset, filled."""

    workload: Workload
    uploads: int
    upload_rows: int
    client: Client
    sending_s: float = 0.0
    whole_s: float = 0.0

    @property
    def name(self) -> str:
        """The name of its plots."""
        return next(name for name, known in WORKLOADS.items() if known is self.workload)

    @property
    def rows(self) -> int:
        return self.uploads * self.upload_rows

    @property
    def asked_rows(self) -> int:
        """The number of rows of the table whose single rows are read."""
        return round(self.rows * self.workload.share)

    def tables(self) -> Uploads:
        for number in range(self.uploads):
            yield self.workload.tables(number, self.upload_rows, self.uploads)

    def bodies(self) -> Iterator[bytes]:
        """Yield each upload, and generate the next ones meanwhile."""
        with ThreadPoolExecutor(1) as maker:
            pending: deque[Future[bytes]] = deque()
            for number in range(self.uploads + _AHEAD):
                if number < self.uploads:
                    rows, uploads = self.upload_rows, self.uploads
                    pending.append(maker.submit(self.workload.body, number, rows, uploads))
                if number >= _AHEAD:
                    yield pending.popleft().result()


def main() -> None:
    """Measure and report."""
    arguments = _arguments()
    params = {name: value for name, value in vars(arguments).items() if name != "plots"}
    report = Report("lazy", params)
    workload = WORKLOADS[arguments.workload]
    with ExitStack() as opened:
        installed = opened.enter_context(installation())
        pending = json.loads(python(installed, _MAKE))
        server = opened.enter_context(web(installed, "rillbase_server.asgi:application", {}))
        client = Client(server.port, pending["key"], pending["tenant"])
        uploads = max(arguments.rows // arguments.upload_rows, 1)
        run = Run(workload, uploads, arguments.upload_rows, client)
        if "scu" in arguments.sweep:
            _sweep_batches(report, installed, run, arguments)
        with _pipeline(installed, arguments) as pipeline:
            _measure(report, run, pipeline.port, arguments.plots)
            if "clients" in arguments.sweep:
                _sweep_clients(report, run, arguments.plots)
        _measure_peers(report, installed, run, arguments)
        if arguments.kills:
            services = partial(_pipeline, installed, arguments, **_KILLED)
            _report_kills(report, kill_again_and_again(client.again(), services, arguments.kills))
    report.finish()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="finish in about a minute")
    parser.add_argument("--workload", choices=sorted(WORKLOADS), default="events")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--upload-rows", type=int, default=100_000)
    parser.add_argument("--peers", type=_names, default=["postgres", "duckdb"])
    parser.add_argument("--peer-rows", type=int, default=1_000_000)
    parser.add_argument("--peer-cache-mb", type=int, default=16, help="PostgreSQL's shared buffers")
    parser.add_argument("--workers", choices=["spark", "threads"], default="spark")
    parser.add_argument("--sweep", type=_names, default=[], help="scu, clients, or both")
    parser.add_argument("--kills", type=int, default=0, help="number of processes to kill")
    parser.add_argument("--plots", type=Path, default=RESULTS, help="where pictures go")
    arguments = parser.parse_args()
    arguments.rows = arguments.rows or (400_000 if arguments.quick else 10_000_000)
    arguments.peer_rows = min(
        arguments.peer_rows, arguments.rows, 200_000 if arguments.quick else arguments.rows
    )
    return arguments


def _names(text: str) -> list[str]:
    return text.split(",") if text else []


@contextmanager
def _pipeline(
    installed: Installation, arguments: argparse.Namespace, **settings: str
) -> Iterator[Web]:
    whole = {**_SETTINGS, "RILLBASE_ANALYTICS_WORKERS": arguments.workers, **settings}
    with service(installed, "pipeline", whole) as running:
        yield running


def _measure(report: Report, run: Run, port: int, plots: Path) -> None:
    """Upload all rows, follow them to the authority, then read there."""
    _warm(run)
    run.client.make_dataset("bench", run.workload.definition)
    before = step_rates(port)
    with FreshnessReader(run.client.again(), run.workload, run.asked_rows) as asking:
        watching = _fill(run)
    _check(run)
    wants = run.workload.sustained
    report.add("ingest_rows_per_s", run.rows / run.sending_s, "rows/s", "uploaded and durable",
               ">= 150000" if run.workload.queried_table == "events" else "")  # fmt: skip
    report.add("sustained_rows_per_s", run.rows / run.whole_s, "rows/s",
               "merged into the authority", wants)  # fmt: skip
    for step, (rows, spent_s) in step_rates(port).items():
        rows_here, spent_here_s = before.get(step, (0.0, 0.0))
        if spent_s > spent_here_s:
            per_s = (rows - rows_here) / (spent_s - spent_here_s)
            report.add(f"{step}_rows_per_s", per_s, "rows/s", "while the stage ran")
    for freshness, spent in asking.spent_ms.items():
        if spent:
            times = [ms for _, ms in spent]
            what = f"a single row during uploads, {len(times)} times"
            report.add(f"freshness_{freshness}_p50_ms", median(times), "ms", what)
            report.add(f"freshness_{freshness}_p99_ms", percentile(times, 0.99), "ms", "the same")
    _measure_reads(report, run)
    _plot_stages(run, watching, plots)
    _plot_staleness(run, watching, plots)
    _plot_freshness(run, asking, plots)


def _warm(run: Run) -> None:
    """Process a small upload in all stages: workers live long, and their startup must not count."""
    warm = Run(run.workload, 1, _WARM_ROWS, run.client.again())
    warm.client.make_dataset("warm", run.workload.definition)
    _fill(warm)
    warm.client.drop_dataset()


def _fill(run: Run) -> StageWatcher:
    """Send all uploads, and wait until the authority contains them."""
    begin = time.perf_counter()
    with StageWatcher(run.client.again(), run.upload_rows) as watching:
        for body in run.bodies():
            sent = time.perf_counter()
            run.client.upload(body)
            run.sending_s += time.perf_counter() - sent
        while watching.authority_state < run.uploads:
            watching.check()
            time.sleep(_LOOK_S)
    run.whole_s = time.perf_counter() - begin
    return watching


def _check(run: Run) -> None:
    """Raise unless the authority has every row, once."""
    counted = 0
    for table in run.workload.definition["tables"]:
        query = {"aggregates": {"n": {"op": "count"}}, "freshness": "any"}
        counted += run.client.query(table, **query)["rows"][0]["n"]
    if counted != run.rows:
        raise RuntimeError(f"{counted} rows instead of {run.rows}")


def _measure_reads(report: Report, run: Run) -> None:
    rng = random.Random(2)
    spent = []
    for _ in range(_POINTS):
        begin = time.perf_counter()
        _point(run, run.client, rng)
        spent.append((time.perf_counter() - begin) * 1000)
    report.add("point_p50_ms", median(spent), "ms", "of the authority, a row", "<= 30")
    report.add("point_p99_ms", percentile(spent, 0.99), "ms", "the same")
    if not run.workload.has_ranges:
        return
    spent = []
    for _ in range(_RANGES):
        begin = time.perf_counter()
        _range(run, run.client, rng)
        spent.append((time.perf_counter() - begin) * 1000)
    what = "0.1 % of the rows, their keys"
    report.add("range_p50_ms", median(spent), "ms", what, "<= 150")
    report.add("range_p99_ms", percentile(spent, 0.99), "ms", "the same")


def _point(run: Run, client: Client, rng: random.Random) -> None:
    key = run.workload.key_of(rng.randrange(run.asked_rows))
    where = {run.workload.key: key}
    rows = client.query(run.workload.queried_table, filter=where, freshness="any")["rows"]
    if len(rows) != 1:
        raise RuntimeError(f"{len(rows)} rows have the key {key}")


def _range(run: Run, client: Client, rng: random.Random) -> None:
    width = max(run.asked_rows // 1000, 1)
    low = rng.randrange(run.asked_rows - width)
    key = run.workload.key
    query = {"columns": [key], "filter": {key: {"$gte": low, "$lt": low + width}}}
    rows = client.query(run.workload.queried_table, **query, limit=10_000, freshness="any")["rows"]
    if len(rows) != min(width, 10_000):
        raise RuntimeError(f"{len(rows)} rows instead of {width}")


def _measure_peers(
    report: Report, installed: Installation, run: Run, arguments: argparse.Namespace
) -> None:
    definition = run.workload.definition
    few = Run(
        run.workload, max(arguments.peer_rows // run.upload_rows, 1), run.upload_rows, run.client
    )
    sustained = run.rows / run.whole_s
    if "postgres" in arguments.peers:
        _measure_postgres(report, installed, few, arguments, sustained)
    if "duckdb" in arguments.peers:
        with duck_db(installed.directory / "peer.duckdb", definition) as duck:
            rows_per_s = rate(duck, few.tables())
        report.add("duckdb_rows_per_s", rows_per_s, "rows/s", "DuckDB, in the client's own process")
        report.add("by_duckdb", sustained / rows_per_s, "x", "ratio of the sustained rates")


def _measure_postgres(
    report: Report,
    installed: Installation,
    few: Run,
    arguments: argparse.Namespace,
    sustained: float,
) -> None:
    """Load rows into a PostgreSQL with a small cache; with rows that fit into the cache there is no
    goal.
    """
    cache_mb: int = arguments.peer_cache_mb
    for name, by_copy, want in (("copy", True, few.workload.by_copy), ("insert", False, ">= 5")):
        directory = installed.directory / f"peer-{name}"
        with postgres(directory, cache_mb, few.workload.definition, by_copy=by_copy) as store:
            rows_per_s = rate(store, few.tables())
            tables, indexes = (n_bytes / 2**20 for n_bytes in store.sizes())
        is_beyond = min(tables, indexes) > cache_mb
        what = f"PostgreSQL by {name.upper()}, {few.rows:,} rows, cache {cache_mb} MiB"
        report.add(f"{name}_rows_per_s", rows_per_s, "rows/s", what)
        report.add(f"{name}_tables_mib", tables, "MiB", "its tables at the end")
        report.add(f"{name}_indexes_mib", indexes, "MiB", "their indexes")
        what = "ratio of the sustained rates" + ("" if is_beyond else ", which fits into the cache")
        report.add(f"by_{name}", sustained / rows_per_s, "x", what, want if is_beyond else "")


def _sweep_batches(
    report: Report, installed: Installation, run: Run, arguments: argparse.Namespace
) -> None:
    """Upload the same rows in batches of several sizes: the paper's figure 2."""
    points = []
    for size in _SWEPT_BYTES:
        one = Run(run.workload, run.uploads, run.upload_rows, run.client.again())
        with _pipeline(installed, arguments, RILLBASE_ANALYTICS_BATCH_BYTES=str(size)):
            one.client.make_dataset(f"batches-{size}", run.workload.definition)
            _fill(one)
        one.client.drop_dataset()
        mib = size >> 20
        points.append((float(mib), one.rows / one.whole_s))
        report.add(f"batch_{mib}_mib_rows_per_s", points[-1][1], "rows/s", "through to authority")
    title = f"{arguments.workload}: rows per second by batch size"
    line = Line("merged into the authority", points)
    Plot(title, "MiB", "rows/s", [line], sweep=True).save(
        arguments.plots / f"lazy-{arguments.workload}-batches.svg"
    )


def _sweep_clients(report: Report, run: Run, plots: Path) -> None:
    """Query with several concurrent clients: the paper's figures 4 and 5."""
    kinds = {"rows": _point, **({"ranges": _range} if run.workload.has_ranges else {})}
    lines = []
    for name, ask in kinds.items():
        points = []
        for count in _SWEPT_CLIENTS:
            per_s = at_once(
                [run.client.again() for _ in range(count)],
                partial(ask, run),
                _SWEPT_S,
            )
            points.append((float(count), per_s))
            report.add(f"{name}_{count}_clients_per_s", per_s, "queries/s", "of the authority")
        lines.append(Line(name, points))
    title = f"{run.workload.queried_table}: queries of the authority per second, by clients"
    Plot(title, "clients", "queries/s", lines, sweep=True).save(
        plots / f"lazy-{run.name}-clients.svg"
    )


def _report_kills(report: Report, killed: KillResults) -> None:
    """The effects of the kills: none."""
    report.add("killed", sum(killed.kills.values()), "", ", ".join(killed.kills))
    report.add("killed_answers", killed.answers, "", "pairs read meanwhile")
    report.add("killed_sums", killed.sums, "", "of which with a sum other than zero", "<= 0")
    report.add("killed_back", killed.back, "", "of which of an earlier state", "<= 0")
    report.add("killed_lost", killed.lost, "", "rows missing from the authority at the end", "<= 0")
    report.add("killed_doubled", killed.doubled, "", "duplicate rows in it", "<= 0")


def _plot_stages(run: Run, watching: StageWatcher, plots: Path) -> None:
    """The paper's figure 10."""
    lines = [
        Line(stage, thinned([(at_s, rows / 1e6) for at_s, rows in points]))
        for stage, points in watching.rows.items()
        if points
    ]
    title = f"{run.name}: rows that have reached each stage"
    Plot(title, "seconds", "million rows", lines, linear=True).save(
        plots / f"lazy-{run.name}-stages.svg"
    )


def _plot_staleness(run: Run, watching: StageWatcher, plots: Path) -> None:
    """The paper's figure 7."""
    title = f"{run.name}: age of the sorted data"
    line = Line("a query with this freshness reads no unsorted rows", thinned(watching.staleness_s))
    Plot(title, "seconds", "s", [line], linear=True).save(plots / f"lazy-{run.name}-staleness.svg")


def _plot_freshness(run: Run, asking: FreshnessReader, plots: Path) -> None:
    """The paper's figure 6."""
    lines = [
        Line(f"freshness {freshness}", asking.over_time(freshness)) for freshness in FRESHNESSES
    ]
    title = f"{run.name}: a single row by its key during uploads"
    Plot(title, "seconds", "ms", [line for line in lines if line.points], linear=True).save(
        plots / f"lazy-{run.name}-freshness.svg"
    )


if __name__ == "__main__":
    main()
