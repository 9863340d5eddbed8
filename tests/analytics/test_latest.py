"""Compares operations on keys that are merged column by column with the same operations applied row
by row.
"""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.rows.latest_operation import by_key, latest, live_rows
from analytics.schema import OP, AnalyticsTable, tables_of
from analytics.table_definitions import TableDefinition
from tests.analytics.serial import Serial

TABLE: TableDefinition = {
    "columns": {"a": "string", "x": "int64", "y": "double", "b": "int64", "z": "string"},
    "key": ["b", "a"],
    "views": {},
}


def table() -> AnalyticsTable:
    import json

    return tables_of(json.dumps({"tables": {"t": TABLE}}))["t"]


keys = st.tuples(st.integers(0, 3), st.sampled_from(["", "p", "ä", "😀"]))
values = st.fixed_dictionaries(
    {},
    optional={
        "x": st.none() | st.integers(-5, 5),
        "y": st.none() | st.floats(allow_nan=False),
        "z": st.none() | st.text(max_size=3),
    },
)
operations = st.lists(
    st.tuples(st.sampled_from(["insert", "update", "delete"]), keys, values), max_size=30
)


def stored(done: list[tuple[str, tuple[int, str], dict[str, Any]]]) -> pa.Table:
    its = table()
    rows = []
    for op, (b, a), given_values in done:
        row: dict[str, Any] = {"b": b, "a": a, OP: its.deleted}
        if op != "delete":
            row |= given_values
            set_here = sum(its.bits[name] for name in given_values)
            row[OP] = its.inserted if op == "insert" else set_here
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=its.stored)


def as_rows(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = live_rows(table).to_pylist()
    return rows


@settings(max_examples=120, deadline=None)
@given(operations, st.lists(st.integers(0, 30), max_size=3))
def test_merged_operations_equal_operations_in_order(
    done: list[tuple[str, tuple[int, str], dict[str, Any]]], cuts: list[int]
) -> None:
    its = table()
    serial = Serial({"t": TABLE})
    for op, (b, a), given_values in done:
        serial.do("t", op, {"b": b, "a": a, **(given_values if op != "delete" else {})})
    whole = latest(stored(done), its.key, its.bits)
    assert as_rows(whole) == serial.rows("t")
    # The result does not depend on the grouping of merges.
    places = sorted({0, *(cut for cut in cuts if cut < len(done)), len(done)})
    parts = [
        latest(stored(done[begin:end]), its.key, its.bits)
        for begin, end in itertools.pairwise(places)
    ]
    together = latest(pa.concat_tables(parts or [stored([])]), its.key, its.bits)
    assert together.equals(whole)


@pytest.mark.parametrize("kind", [pa.int32(), pa.int64(), pa.date32(), pa.timestamp("us", "UTC")])
@settings(max_examples=40, deadline=None)
@given(sent=st.lists(st.lists(st.integers(-3, 9), max_size=8), max_size=4))
def test_rows_of_one_number_keep_their_order(kind: pa.DataType, sent: list[list[int]]) -> None:
    # In several parts, some of them sorted, like uploads and runs.
    numbers = [number for part in sent for number in part]
    bits = pa.int32() if kind in (pa.int32(), pa.date32()) else pa.int64()
    keys = pa.chunked_array([pa.array(part, bits).view(kind) for part in sent], kind)
    rows = pa.table({"key": keys, "place": list(range(len(numbers)))})
    expected = sorted(range(len(numbers)), key=lambda place: numbers[place])
    assert by_key(rows, ["key"])["place"].to_pylist() == expected


def test_rows_with_a_null_number_sort_last() -> None:
    rows = pa.table({"key": pa.array([2, None, 1, None], pa.int64()), "place": [0, 1, 2, 3]})
    assert by_key(rows, ["key"])["place"].to_pylist() == [2, 0, 1, 3]
