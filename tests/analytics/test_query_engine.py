"""The engine of queries has the answers of a plain reference, whatever the files."""

from __future__ import annotations

import datetime
import itertools
import json
import math
import random
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from analytics.query import engine
from analytics.query.engine import query_engine
from analytics.query.files import QueryFile, ReadPlan
from analytics.query.pieces import answer_piece, combine, split
from analytics.query.query_parser import AnalyticsQuery, read_query
from analytics.query.run import prepare, run
from analytics.query.scan import ScanReader
from analytics.query.sql_text import Sql
from analytics.rows.latest_operation import latest
from analytics.rows.segment import write_segment
from analytics.rows.sorted_file import write_sorted
from analytics.schema import OP, AnalyticsTable, tables_of
from foundation.errors import QueryTooExpensive, SumOverflow
from tests.analytics import plain_queries
from tests.analytics.plain_queries import Overflow
from tests.analytics.serial import Serial
from tests.peak_memory import peak_memory

if TYPE_CHECKING:
    from analytics.table_definitions import TableDefinition
    from tests.analytics.dataset_client import Json

#: Two columns differ only in case. The last one is newer than the first file.
DEFINITION: TableDefinition = {
    "columns": {
        "place": "string",
        "item": "int64",
        "n": "int32",
        "N": "int64",
        "x": "double",
        "paid": "bool",
        "day": "date",
        "at": "timestamp",
        "added": "string",
    },
    "key": ["place", "item"],
    "views": {"by_item": {"key": ["item", "place"], "columns": ["item", "place", "n", "x"]}},
}
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
VALUES: dict[str, list[Any]] = {
    "place": ["", "a", "A", "b", "é", "😀"],
    "item": [*range(-2, 8)],
    "n": [0, 1, -1, 2**31 - 1, None],
    "N": [0, 5, 2**53 + 1, -(2**62), 2**62, None],
    "x": [0.0, -0.0, 1.5, -2.5, 7.0, math.nan, math.inf, None],
    "paid": [True, False, None],
    "day": [datetime.date(2026, 11, 1), datetime.date(1969, 12, 31), None],
    "at": [EPOCH, EPOCH - datetime.timedelta(microseconds=1), EPOCH.replace(year=2026), None],
    "added": ["x", "", None],
}
#: The seeds of everyday runs, and all others.
FEW, MANY = range(4), range(4, 12)
#: Values that no row has.
OTHERS: dict[str, list[Any]] = {
    "n": [0.5, 2**40, -(2**33)],
    "N": [2.5, 1e19],
    "x": [2, 2**60, math.nan],
    "place": ["zz"],
    "item": [3.5, 99],
}


class Files:
    """A table with rows in all stages, and the rows that it has."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self._folder, self._rng = folder, rng
        self._names = itertools.count()
        self.tables = tables_of(json.dumps({"tables": {"t": DEFINITION}}))
        self.table: AnalyticsTable = self.tables["t"]
        self._serial = Serial({"t": DEFINITION})
        self.plan = ReadPlan(1, 0.0, self._authority(), [self._later(n) for n in range(3)])

    @property
    def rows(self) -> list[Json]:
        return self._serial.rows("t")

    def _path(self) -> Path:
        return self._folder / str(next(self._names))

    def _row(self) -> Json:
        return {name: self._rng.choice(values) for name, values in VALUES.items()}

    def _authority(self) -> list[QueryFile]:
        if self._rng.random() < 0.15:
            return []
        for _ in range(40):
            self._serial.do("t", "insert", self._row())
        listed = self.rows
        middle = self._rng.randrange(1, len(listed))
        for row in listed[:middle]:
            row["added"] = None
        schema = self.table.arrow
        old = schema.remove(schema.get_field_index("added"))
        key, by_item = self.table.key, self.table.views[0]
        files = [
            self._sorted("authority", "", old, key, listed[:middle]),
            self._sorted("authority", "", schema, key, listed[middle:]),
        ]
        listed = sorted(listed, key=lambda row: (row["item"], row["place"]))
        view_schema = self.table.view_schema(by_item)
        files.append(self._sorted("authority", by_item.name, view_schema, by_item.key, listed))
        return files

    def _sorted(
        self, stage: str, view: str, schema: pa.Schema, key: tuple[str, ...], rows: list[Json]
    ) -> QueryFile:
        listed = [{name: row[name] for name in schema.names} for row in rows]
        table = pa.Table.from_pylist(listed, schema=schema)
        return self._write(stage, view, key, table)

    def _write(self, stage: str, view: str, key: tuple[str, ...], rows: pa.Table) -> QueryFile:
        path = self._path()
        blocks = [rows.slice(begin, 7) for begin in range(0, rows.num_rows, 7)]
        info = write_sorted(path, rows.schema, key, blocks)
        assert info is not None
        return QueryFile(path, stage, view, info.rows, info.lowest, info.highest)

    def _later(self, number: int) -> QueryFile:
        operations = [self._operation() for _ in range(self._rng.randrange(1, 12))]
        rows = pa.Table.from_pylist(operations, schema=self.table.stored)
        if number < 1:
            merged = latest(rows, self.table.key, self.table.bits)
            return self._write("merged", "", self.table.key, merged)
        path = self._path()
        write_segment(path, self.table, rows)
        return QueryFile(path, "unsorted", "", rows.num_rows, (), (), (number, 0))

    def _operation(self) -> Json:
        op, row = self._rng.choice(["insert", "update", "delete"]), self._row()
        key = {name: row[name] for name in self.table.key}
        if op == "delete":
            self._serial.do("t", op, key)
            return {**key, OP: self.table.deleted}
        if op == "update":
            row = {n: v for n, v in row.items() if n in key or self._rng.random() < 0.4}
        self._serial.do("t", op, row)
        bits = sum(self.table.bits[name] for name in row if name not in key)
        return {**row, OP: self.table.inserted if op == "insert" else bits}


def random_filter(rng: random.Random, names: list[str], depth: int = 0) -> Json:
    if depth < 3 and rng.random() < 0.35:
        parts = [random_filter(rng, names, depth + 1) for _ in range(rng.randrange(1, 4))]
        return {rng.choice(["$and", "$or", "$or", "$nor"]): parts}
    name = rng.choice(names)
    known = [*VALUES.get(name, [0, 1, 2.5, None]), *OTHERS.get(name, [])]
    present = [value for value in known if value is not None]
    op = rng.choice(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists"])
    if op == "$exists":
        return {name: {op: rng.random() < 0.5}}
    if op in ("$in", "$nin"):
        listed = [v for v in rng.choices(known, k=rng.randrange(4)) if not is_nan(v)]
        return {name: {op: listed}}
    return {name: {op: rng.choice(known if op in ("$eq", "$ne") else present)}}


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def random_query(rng: random.Random) -> Json:
    names = [*VALUES]
    query: Json = {"limit": rng.choice([1, 3, 1000])}
    if rng.random() < 0.8:
        query["filter"] = random_filter(rng, rng.choice([names, ["place", "item"]]))
    if rng.random() < 0.5:
        query["columns"] = rng.sample(names, rng.randrange(1, 5))
        by = names
    else:
        by = query["group_by"] = rng.sample(names, rng.randrange(3))
        query["aggregates"] = {f"a{n}": random_aggregate(rng) for n in range(rng.randrange(1, 4))}
        if rng.random() < 0.3:
            query["having"] = {"a0": {"$exists": True}}
        by = [*by, *query["aggregates"]]
    query["order"] = [(n, rng.choice([1, -1])) for n in rng.sample(by, rng.randrange(len(by)) % 3)]
    return query


def random_aggregate(rng: random.Random) -> Json:
    op = rng.choice(["count", "sum", "min", "max", "avg", "distinct"])
    numbers = ["item", "n", "N", "x"]
    return {"op": op, "column": rng.choice(numbers if op in ("sum", "avg") else [*VALUES])}


def as_body(value: Any) -> Any:
    """Return a query as it is sent."""
    if isinstance(value, dict):
        return {name: as_body(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [as_body(one) for one in value]
    if isinstance(value, datetime.date):
        return value.isoformat()
    return {"$numberDouble": "NaN"} if is_nan(value) else value


def at_once(query: AnalyticsQuery, plan: ReadPlan) -> list[Json]:
    rows: list[Json] = run(query, plan, prepare(query, plan)).rows.to_pylist()
    return rows


def in_pieces(query: AnalyticsQuery, plan: ReadPlan) -> list[Json]:
    where, having = query.filters.where, query.filters.having
    primary = replace(plan, authority=[file for file in plan.authority if file.view == ""])
    ranges = split(replace(query, table=replace(query.table, views=())), primary, where)
    with query_engine() as duck:
        pieces = [answer_piece(query, plan, where, one, ScanReader(), {}, duck) for one in ranges]
        rows = combine(query, having, pieces, duck)
    names = list(query.columns) or rows.column_names
    found: list[Json] = rows.select(names).to_pylist()
    return found


def same(found: Any, expected: Any) -> bool:
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(found, dict):
        return [*found] == [*expected] and same([*found.values()], [*expected.values()])
    if isinstance(found, float) and isinstance(expected, float):
        return (
            math.isclose(found, expected, rel_tol=1e-12)
            or is_nan(found) == is_nan(expected) is True
        )
    return bool(found == expected)


@pytest.mark.parametrize(
    "seed", [*FEW, *(pytest.param(seed, marks=pytest.mark.long) for seed in MANY)]
)
def test_random_queries_have_the_answers_of_the_reference(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    files = Files(tmp_path, rng)
    for number in range(60):
        asked = random_query(rng)
        query = read_query({"table": "t", **as_body(asked)}, files.tables, 1_000)
        for execute in (at_once, in_pieces):
            try:
                expected = plain_queries.answer(files.rows, asked, files.table.key)
            except Overflow:
                with pytest.raises(SumOverflow):
                    execute(query, files.plan)
                continue
            found = execute(query, files.plan)
            assert same(found, expected), (number, asked, execute.__name__)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path, random.Random(3))


def asked(files: Files, **body: Any) -> list[Json]:
    query = read_query({"table": "t", **body}, files.tables, 1_000)
    return at_once(query, files.plan)


def test_a_filter_may_be_as_large_as_allowed(files: Files) -> None:
    items = [row["item"] for row in files.rows]
    listed = asked(files, filter={"item": {"$in": [*range(10_000)]}}, columns=["item"])
    assert len(listed) == sum(item >= 0 for item in items)
    many: Json = {"$or": [{"item": number} for number in range(900)]}
    assert len(asked(files, filter=many, columns=["item"])) == len(listed)
    nested: Json = {"item": {"$gte": 0}}
    for _ in range(48):
        nested = {"$or": [nested, {"item": 99}]}
    assert len(asked(files, filter=nested, columns=["item"])) == len(listed)


def test_values_are_never_read_as_sql(files: Files) -> None:
    hostile = "' OR true --"
    assert asked(files, filter={"place": hostile}) == []
    assert asked(files, filter={"place": {"$in": [hostile, '" OR true', "{}", "?"]}}) == []


def test_a_query_holds_no_more_memory_than_allowed(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("analytics.query.engine.MAX_BYTES", 16)
    with pytest.raises(QueryTooExpensive):
        asked(files)


def test_groups_that_do_not_fit_into_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MAX_BYTES", 64 * 1024 * 1024)
    monkeypatch.setattr(engine, "_idle", deque())
    many = Sql("SELECT range AS n, count(*) AS x FROM range(20_000_000) GROUP BY range")
    schema = pa.schema([("n", pa.int64()), ("x", pa.int64())])
    with peak_memory() as peak, pytest.raises(QueryTooExpensive), query_engine() as duck:
        duck.rows(many, schema)
    assert peak.added_mib < 256


def test_a_file_that_was_removed_is_missed_and_the_next_query_works(files: Files) -> None:
    path = Path(str(next(file.path for file in files.plan.authority if file.view == "")))
    kept = path.read_bytes()
    assert asked(files)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        asked(files)
    path.write_bytes(kept)
    assert same(asked(files, limit=1000), files.rows)


def test_files_are_found_in_a_folder_whose_name_is_a_pattern(tmp_path: Path) -> None:
    folder = tmp_path / "a[b]*{c}'?"
    folder.mkdir()
    files = Files(folder, random.Random(5))
    assert same(asked(files, limit=1000), files.rows)
