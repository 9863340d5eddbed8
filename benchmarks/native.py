"""Native collections compared with collections in PostgreSQL, through the whole API.

    python -m benchmarks.native [--quick]

One web process serves both, beside PostgreSQL with synchronous commit and a storage node that syncs
every write; the load generator is a separate process. Rounds of both backends alternate, and ratios
are medians of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from benchmarks.documents import BULK, Caller, random_document
from benchmarks.support import load, native_live
from benchmarks.support.installation import installation, python, web
from benchmarks.support.native import STORAGE_NODE, built
from benchmarks.support.own_server import TOKEN
from benchmarks.support.report import Report, median, percentile
from benchmarks.support.storage_node import running_node

BACKENDS = ("native", "postgres")
_SEED = """
import json
import django; django.setup()
from documents.models import Collection, Index
from foundation.scope import scoped
from tenants.models import Quota
from tests.make import make_key, make_tenant
INDEXES = {"random": [["random", 1]], "group": [["group", 1], ["random", -1]]}
account = make_tenant(plan="dedicated")
names = ("requests_per_s", "requests_burst", "connections", "subscriptions")
limits = dict.fromkeys(names, 1000000)
Quota(tenant=account.tenant, limits=limits).save(using="staff")
with scoped(tenant_id=account.tenant.id):
    for backend in ("native", "postgres"):
        Collection.objects.create(name=f"{backend}-plain", backend=backend)
        live = Collection.objects.create(name=f"{backend}-live", backend=backend)
        Index.objects.create(collection=live, name="shard", fields=[["shard", 1]], state="ready")
        filled = Collection.objects.create(name=f"{backend}-filled", backend=backend)
        for name, fields in INDEXES.items():
            Index.objects.create(collection=filled, name=name, fields=fields, state="ready")
print(json.dumps(make_key(account.tenant, scopes=["documents:read", "documents:write"])))
"""


@dataclass(frozen=True, slots=True)
class Extent:
    """The extent of the measurement."""

    seconds: float
    rounds: int
    #: The size of the collections that are queried.
    documents: int


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="finish in about two minutes")
    is_quick = parser.parse_args().quick
    extent = Extent(2.0, 3, 50_000) if is_quick else Extent(8.0, 5, 1_000_000)
    report = Report("native", {"seconds": extent.seconds, "documents": extent.documents})
    with ExitStack() as stack:
        installed = stack.enter_context(installation())
        port = stack.enter_context(running_node(built(STORAGE_NODE), "sync"))
        storage = {"STORAGE_URL": f"redis://admin:{TOKEN}@127.0.0.1:{port}"}
        key = json.loads(python(installed, _SEED))
        server = stack.enter_context(web(installed, "rillbase_server.asgi:application", storage))
        caller = Caller(server, key)
        _measure_writes(report, caller, extent)
        _measure_reads(report, caller, extent)
        _measure_queries(report, caller, extent)
        native_live.measure_feed(report, installed, storage, caller)
        with native_live.grid(installed, storage):
            native_live.measure_latencies(report, server, key, extent.rounds, extent.seconds)
    report.finish()


def _compare(
    report: Report,
    name: str,
    what: str,
    goal: str,
    rounds: int,
    rate_of: Callable[[str], float],
) -> None:
    """Report rates of both backends, and the ratio."""
    rates = [tuple(rate_of(backend) for backend in BACKENDS) for _ in range(rounds)]
    for number, backend in enumerate(BACKENDS):
        rate = median([round_rates[number] for round_rates in rates])
        report.add(f"{name}_{backend}_per_s", rate, "/s", f"{what}, {backend}")
    ratio = median([native / postgres for native, postgres in rates])
    report.add(f"{name}_ratio", ratio, "x", "native ÷ postgres", goal)


def _measure_writes(report: Report, caller: Caller, extent: Extent) -> None:
    one = json.dumps(random_document(random.Random(1))).encode()
    rng = random.Random(2)
    operations = [{"insert": random_document(rng)} for _ in range(BULK)]
    many = json.dumps({"operations": operations}).encode()

    def single(connections: int, backend: str) -> float:
        path = f"{backend}-plain/documents"
        target = caller.target(path, body=one, status=201, expect='"version":1')
        return load.run(target, connections=connections, seconds=extent.seconds).rate_per_s

    def bulk(backend: str) -> float:
        target = caller.target(f"{backend}-plain/documents:bulk", body=many, expect='"version":1')
        return load.run(target, connections=2, seconds=extent.seconds).rate_per_s * BULK

    for connections in (8, 64):
        what = f"single inserts, {connections} outstanding"
        _compare(
            report,
            f"write_{connections}",
            what,
            ">= 1.5",
            extent.rounds,
            partial(single, connections),
        )
    _compare(report, "bulk", f"inserts in batches of {BULK}", ">= 1.5", extent.rounds, bulk)


def _measure_reads(report: Report, caller: Caller, extent: Extent) -> None:
    targets = {}
    for backend in BACKENDS:
        document = json.dumps(random_document(random.Random(3))).encode()
        created = caller.post(f"{backend}-plain/documents", document).json()
        identity = created["id"]["$oid"]
        path = f"{backend}-plain/documents/{identity}"
        targets[backend] = caller.target(path, expect=identity)

    def reads(backend: str) -> float:
        return load.run(targets[backend], connections=8, seconds=extent.seconds).rate_per_s

    _compare(report, "read", "reads of one document", ">= 1", extent.rounds, reads)


def _measure_queries(report: Report, caller: Caller, extent: Extent) -> None:
    for backend in BACKENDS:
        rng, begin = random.Random(4), time.perf_counter()
        for _ in range(extent.documents // BULK):
            operations = [{"insert": random_document(rng)} for _ in range(BULK)]
            body = json.dumps({"operations": operations}).encode()
            caller.post(f"{backend}-filled/documents:bulk", body)
        rate = extent.documents / (time.perf_counter() - begin)
        report.add(f"fill_{backend}_per_s", rate, "/s", f"inserts with two indexes, {backend}")
    width = 20 * 1_000_000_000 // extent.documents
    queries: dict[str, Callable[[random.Random], dict[str, object]]] = {
        "indexed": lambda rng: {
            "filter": {"random": {"$gte": (low := rng.randrange(900_000_000)), "$lt": low + width}}
        },
        "sorted": lambda _: {"sort": [["random", 1]], "limit": 20},
        "sorted_group": lambda rng: {
            "filter": {"group": rng.randrange(50_000)},
            "sort": [["random", -1]],
            "limit": 20,
        },
    }
    for name, make in queries.items():
        durations_ms: dict[str, list[float]] = {backend: [] for backend in BACKENDS}
        rng = random.Random(5)
        for number in range(200):
            body = json.dumps(make(rng)).encode()
            for backend in BACKENDS if number % 2 else BACKENDS[::-1]:
                sent = time.perf_counter()
                caller.post(f"{backend}-filled/query", body)
                durations_ms[backend].append((time.perf_counter() - sent) * 1000)
        medians = {backend: percentile(durations_ms[backend], 0.5) for backend in BACKENDS}
        what = f"{name} query on {extent.documents:,} documents, median"
        for backend in BACKENDS:
            report.add(f"{name}_{backend}_ms", medians[backend], "ms", f"{what}, {backend}")
        ratio = medians["postgres"] / medians["native"]
        report.add(f"{name}_ratio", ratio, "x", "speed, native ÷ postgres", ">= 1.5")


if __name__ == "__main__":
    main()
