"""Spatial indexes of both backends, beside PostgreSQL's own GiST index on points.

    python -m benchmarks.spatial [--quick]

Documents have a point, as real places are distributed. Boxes and polygons contain the same shares
of all points; their 100 first documents by number are requested, so all matches are read. `$near`
requests 1 to 1,000 documents. Every query runs in the storage node, in PostgreSQL with our entries,
and on a table with a GiST index (`p <@ box`, `ORDER BY p <-> point`) in turns; with few documents
some also run without an index. Ours run in a process as the application does, without HTTP, and the
table returns rows to psycopg.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from contextlib import ExitStack
from typing import Any

from benchmarks.support.installation import ROOT, Installation, installation, python
from benchmarks.support.native import STORAGE_NODE, built
from benchmarks.support.own_server import TOKEN
from benchmarks.support.plot import Line, Plot
from benchmarks.support.report import RESULTS, Report
from benchmarks.support.storage_node import running_node

_SEED = """
import django; django.setup()
from documents.models import Collection, Index
from foundation.scope import scoped
from tests.make import make_tenant
account = make_tenant(plan="dedicated")
with scoped(tenant_id=account.tenant.id):
    for backend in ("native", "postgres"):
        collection = Collection.objects.create(name=backend, backend=backend)
        for order in ("2d", "2dsphere"):
            fields = [["place", order]]
            Index.objects.create(collection=collection, name=order, fields=fields, state="ready")
print(account.tenant.id)
"""
_STORES = """
import django; django.setup()
from benchmarks.support.spatial_stores import main
main()
"""
_NAMES = {
    "native": "storage node",
    "postgres": "PostgreSQL backend",
    "gist": "GiST on a table",
    "native-plain": "storage node, no index",
    "postgres-plain": "PostgreSQL backend, no index",
}


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="finish in about three minutes")
    parser.add_argument("--documents", type=int, help="the number of documents")
    arguments = parser.parse_args()
    documents = arguments.documents or (100_000 if arguments.quick else 5_000_000)
    queries = 50 if arguments.quick else 100
    report = Report("spatial", {"documents": documents, "queries": queries})
    with ExitStack() as stack:
        installed = stack.enter_context(installation())
        port = stack.enter_context(running_node(built(STORAGE_NODE), "sync"))
        installed.environment["STORAGE_URL"] = f"redis://admin:{TOKEN}@127.0.0.1:{port}"
        tenant = python(installed, _SEED)
        measured = _measure(installed, tenant, documents, queries)
    for system, seconds in measured["fill_s"].items():
        what = f"inserts with both spatial indexes, {_NAMES[system]}"
        if system == "gist":
            what = "COPY into the table, its index and statistics"
        report.add(f"fill_{system}_per_s", documents / seconds, "/s", what)
    for name, systems in measured["results"].items():
        _add(report, name, systems)
    _plot(measured["results"], documents)
    report.finish()


def _measure(installed: Installation, tenant: str, documents: int, queries: int) -> dict[str, Any]:
    command = [sys.executable, "-c", _STORES]
    command += [tenant, str(documents), str(queries)]
    with subprocess.Popen(
        command, env=installed.environment, cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as child:
        last = ""
        for last in child.stdout or ():
            if not last.startswith("{"):
                print(last.strip(), "…", file=sys.stderr, flush=True)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, command)
    measured: dict[str, Any] = json.loads(last)
    return measured


def _add(report: Report, name: str, systems: dict[str, Any]) -> None:
    for system, figures in systems.items():
        what = f"{name.replace('_', ' ')}, median, {_NAMES[system]}"
        report.add(f"{name}_{system}_ms", figures["ms"], "ms", what)
        if system in ("native", "postgres"):
            what = "documents read ÷ documents of the result"
            report.add(f"{name}_{system}_read", figures["amplification"], "x", what)
    for system in ("native", "postgres"):
        ratio = systems["gist"]["ms"] / systems[system]["ms"]
        report.add(f"{name}_{system}_vs_gist", ratio, "x", "speed, ours ÷ GiST")


def _plot(results: dict[str, Any], documents: int) -> None:
    for kind, x_name in (("box", "matches"), ("near_plane", "documents requested")):
        lines = {system: list[tuple[float, float]]() for system in ("native", "postgres", "gist")}
        for name, systems in results.items():
            prefix, _, amount = name.rpartition("_")
            if prefix != kind or amount == "far":
                continue
            x = float(amount) * documents if kind == "box" else float(amount)
            for system, points in lines.items():
                points.append((x, systems[system]["ms"]))
        drawn = [Line(_NAMES[system], points) for system, points in lines.items()]
        title = f"{'$geoWithin $box' if kind == 'box' else '$near'}, {documents:,} documents"
        Plot(title, x_name, "ms", drawn).save(RESULTS / f"spatial-{kind.replace('_', '-')}.svg")


if __name__ == "__main__":
    main()
