"""The engine of JSON queries, beside Arrow's own compute functions on the same files.

    python -m benchmarks.queries [--rows 10000000] [--unsorted 0] [--rounds 3]

A table of events of a hundred bytes, in files of two million rows as the pipeline writes them, and
so many later rows in segments of 100,000, which replace others or are new. No server takes part.
Each query runs here and with Arrow in turns: scan a dataset with a filter, merge by an anti join,
group or sort the table. Arrow scans with two threads; ours has one. All answers are compared. The
figures are medians of the CPU time of all threads, which depends less than the time that passes on
what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import math
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from analytics.query.files import QueryFile, ReadPlan
from analytics.query.query_parser import read_query
from analytics.query.run import prepare, run
from analytics.rows.latest_operation import latest, live_rows
from analytics.rows.segment import read_segment, with_mask, write_segment
from analytics.rows.sorted_file import write_sorted
from analytics.schema import AnalyticsTable, tables_of
from benchmarks.support.report import Report, median
from benchmarks.support.uploads import WORKLOADS

_FILE_ROWS, _PART_ROWS = 2_000_000, 100_000
_THREADS = 2
_QUICK_ROUNDS = 15
_EVENTS = WORKLOADS["events"]


@dataclass(frozen=True)
class _Case:
    """A query, and the same for Arrow."""

    query: Mapping[str, Any]
    where: pc.Expression | None
    columns: tuple[str, ...]
    finish: Callable[[pa.Table], pa.Table]
    is_quick: bool = False


@dataclass
class _Files:
    table: AnalyticsTable
    plan: ReadPlan = field(default_factory=lambda: ReadPlan(1, 0.0))


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--unsorted", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    pa.set_cpu_count(_THREADS)
    report = Report("queries", vars(arguments))
    with tempfile.TemporaryDirectory(prefix="rillbase-bench-") as folder:
        files = _make(Path(folder), arguments.rows, arguments.unsorted)
        ratios = [
            _measure(report, name, case, files, arguments.rounds)
            for name, case in _cases(arguments.rows).items()
        ]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    report.add("by_arrow", mean, "x", "geometric mean of Arrow's CPU time / ours", ">= 1")
    report.finish()


def _make(folder: Path, count: int, unsorted: int) -> _Files:
    definition = {"tables": {"events": {**_EVENTS.definition["tables"]["events"], "views": {}}}}
    table = tables_of(json.dumps(definition))["events"]
    files = _Files(table)
    for begin in range(0, count, _FILE_ROWS):
        path = folder / f"{begin}.parquet"
        starts = range(begin, min(begin + _FILE_ROWS, count), _PART_ROWS)
        blocks = (_rows(table, start, min(_PART_ROWS, count - start), 1) for start in starts)
        info = write_sorted(path, table.arrow, table.key, blocks)
        if info is not None:
            file = QueryFile(path, "authority", "", info.rows, info.lowest, info.highest)
            files.plan.authority.append(file)
    for number, begin in enumerate(range(0, unsorted, _PART_ROWS), start=1):
        path = folder / f"{number}.segment"
        part = min(_PART_ROWS, unsorted - begin)
        rows = _rows(table, number, part, max(count // part, 1))
        write_segment(path, table, with_mask(table, rows, table.inserted))
        files.plan.later.append(QueryFile(path, "unsorted", "", part, (), (), (number, 0)))
    return files


def _rows(table: AnalyticsTable, first: int, count: int, stride: int) -> pa.Table:
    """Return events with the keys `first`, `first` + `stride`, …"""
    rows = _EVENTS.tables(0, count, 1)["events"]
    keys = pa.array(range(first, first + count * stride, stride), pa.int64())
    return rows.set_column(0, "id", keys).select([*table.columns]).cast(table.arrow)


def _cases(count: int) -> dict[str, _Case]:
    middle, width = count // 2, count // 1000
    key, device = pc.field("id"), pc.field("device")
    few = {"device": {"$lt": 100}}
    by_key = [("id", "ascending")]

    def sorted_by(order: list[tuple[str, str]], limit: int) -> Callable[[pa.Table], pa.Table]:
        return lambda rows: rows.take(pc.sort_indices(rows, sort_keys=order)[:limit])

    def grouped(
        by: list[str], calls: list[Any], order: list[tuple[str, str]], limit: int
    ) -> Callable[[pa.Table], pa.Table]:
        return lambda rows: (
            rows.group_by(by, use_threads=False).aggregate(calls).sort_by(order)[:limit]
        )

    return {
        "point": _Case(
            {"filter": {"id": middle}}, key == middle,
            ("id", "at", "device", "kind", "value", "note"),
            sorted_by(by_key, 1000), is_quick=True),
        "range": _Case(
            {"columns": ["id"], "filter": {"id": {"$gte": middle, "$lt": middle + width}},
             "limit": 10_000},
            (key >= middle) & (key < middle + width), ("id",), sorted_by(by_key, 10_000),
            is_quick=True),
        "first_of_1_percent": _Case(
            {"columns": ["id", "at", "device", "value"], "filter": few}, device < 100,
            ("id", "at", "device", "value"), sorted_by(by_key, 1000)),
        "count_1_percent": _Case(
            {"group_by": [], "aggregates": {"n": {"op": "count"}}, "filter": few}, device < 100,
            ("id", "device"), lambda rows: pa.table({"n": [rows.num_rows]})),
        "order": _Case(
            {"columns": ["id", "value"], "order": [["value", -1]], "limit": 100}, None,
            ("id", "value"), sorted_by([("value", "descending"), *by_key], 100)),
        "group_40": _Case(
            {"group_by": ["kind"], "aggregates": {
                "n": {"op": "count"}, "s": {"op": "sum", "column": "value"},
                "m": {"op": "max", "column": "at"}}}, None, ("id", "kind", "value", "at"),
            grouped(["kind"], [([], "count_all"), ("value", "sum"), ("at", "max")],
                    [("kind", "ascending")], 1000)),
        "group_10000": _Case(
            {"group_by": ["device"], "aggregates": {"a": {"op": "avg", "column": "value"}},
             "order": [["a", -1]], "limit": 10}, None, ("id", "device", "value"),
            grouped(["device"], [("value", "mean")],
                    [("value_mean", "descending"), ("device", "ascending")], 10)),
        "distinct": _Case(
            {"group_by": ["kind"], "aggregates": {"d": {"op": "distinct", "column": "device"}}},
            None, ("id", "kind", "device"),
            grouped(["kind"], [("device", "count_distinct")], [("kind", "ascending")], 1000)),
    }  # fmt: skip


def _measure(report: Report, name: str, case: _Case, files: _Files, rounds: int) -> float:
    """Report a query's CPU times, and return Arrow's divided by ours."""
    spent: dict[str, list[float]] = {"ours": [], "arrow": []}
    passed: dict[str, list[float]] = {"ours": [], "arrow": []}
    found = {}
    for _ in range((_QUICK_ROUNDS if case.is_quick else rounds) + 1):
        for who, execute in (("ours", _ours), ("arrow", _arrow)):
            begin, began = time.process_time(), time.perf_counter()
            found[who] = execute(case, files)
            spent[who].append((time.process_time() - begin) * 1000)
            passed[who].append((time.perf_counter() - began) * 1000)
    _check(name, found["ours"], found["arrow"])
    here, there = (median(times[1:]) for times in spent.values())
    wall, wall_there = (median(times[1:]) for times in passed.values())
    report.add(f"{name}_ms", here, "ms", f"CPU time; Arrow: {there:.1f} ms")
    report.add(f"{name}_wall_ms", wall, "ms", f"Arrow: {wall_there:.1f} ms")
    return there / here


def _ours(case: _Case, files: _Files) -> pa.Table:
    body = {"table": files.table.name, **case.query}
    query = read_query(body, {files.table.name: files.table}, 10_000)
    return run(query, files.plan, prepare(query, files.plan)).rows


def _arrow(case: _Case, files: _Files) -> pa.Table:
    paths = [str(file.path) for file in files.plan.authority]
    dataset = ds.dataset(paths, schema=files.table.arrow, format="parquet")
    names, key = list(case.columns), list(files.table.key)
    rows = dataset.to_table(columns=names, filter=case.where)
    if not files.plan.later:
        return case.finish(rows)
    parts = [read_segment(file.path, files.table, names) for file in files.plan.later]
    changed = live_rows(latest(pa.concat_tables(parts), key, files.table.bits)).select(names)
    kept = rows.join(changed.select(key), key, join_type="left anti").select(names)
    changed = changed if case.where is None else changed.filter(case.where)
    return case.finish(pa.concat_tables([kept.cast(changed.schema), changed]))


def _check(name: str, found: pa.Table, expected: pa.Table) -> None:
    """Raise unless two answers are equal, up to the order of additions."""
    for ours, theirs in zip(found.columns, expected.columns, strict=True):
        for one, other in zip(ours.to_pylist(), theirs.to_pylist(), strict=True):
            if one != other and not (isinstance(one, float) and math.isclose(one, other)):
                raise RuntimeError(f"{name}: {one} instead of {other}")


if __name__ == "__main__":
    main()
