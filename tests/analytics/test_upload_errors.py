"""A rejected row of an upload names its line as a text editor counts it, the field, the value."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.analytics.dataset_client import NDJSON, as_lines, make_dataset
from tests.analytics.test_compound_keys import FILES
from tests.analytics.test_file_uploads import JSON, columns, send
from tests.caller import problem

if TYPE_CHECKING:
    from tests.analytics.dataset_client import DatasetClient

BAD_VALUES = [
    ("amount", "abc", 'expected a number, got "abc"'),
    ("count", 3_000_000_000, "expected an integer of 32 bits, got 3000000000"),
    ("count", 1.5, "expected an integer of 32 bits, got 1.5"),
    ("customer", 5, "expected a string, got 5"),
    ("paid", "x" * 50, f'expected true or false, got "{"x" * 40}…"'),
    ("day", "soon", 'expected a day such as 2026-11-21, got "soon"'),
    ("at", [1], "expected a time such as 2026-11-21T08:00:00Z, got an array"),
]


def details(answer: Any, code: str = "invalid_upload") -> list[str]:
    refusal = problem(answer, 400, code)
    texts = [error["detail"] for error in refusal["errors"]]
    assert refusal["detail"] == texts[0]
    return texts


@pytest.mark.parametrize(("column", "value", "expected"), BAD_VALUES)
def test_a_value_that_does_not_fit_is_named_with_its_line_and_column(
    shop: DatasetClient, column: str, value: object, expected: str
) -> None:
    rows = [{"id": 1}, {"id": 2, column: value}]
    lines = b"\n" + as_lines({"orders": row} for row in rows)
    answer = shop.send("uploads", lines, NDJSON)
    assert details(answer) == [f"line 3: orders.{column}: {expected}"]
    assert answer.json()["errors"][0]["pointer"] == f"/orders/{column}"
    mapping = columns(id="id", **{f"My {column}": column})
    renamed = b"\r\n" + as_lines([{"id": 1}, {"id": 2, f"My {column}": value}])
    assert details(send(shop, renamed, NDJSON, columns=mapping)) == [
        f"line 3: My {column}: {expected}"
    ]
    assert details(send(shop, json.dumps(rows), JSON)) == [
        f"line 1, column 13: {column}: {expected}"
    ]


def test_text_that_is_not_json_names_its_line_and_column(shop: DatasetClient) -> None:
    file = '\ufeff{"orders": {"id": 1}}\r\n\r\n{"orders": {"id": nope}}\r\n{"orders": {"id": 2}\r\n'
    assert details(shop.send("uploads", file.encode(), NDJSON)) == [
        "line 3, column 19: expected a value",
        "line 4, column 22: expected a comma or a closing brace",
    ]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_rows_of_an_array_have_the_lines_of_the_file(shop: DatasetClient, line_end: str) -> None:
    file = (
        '[\n  {\n    "id": 1,\n    "amount": "abc"\n  },\n'
        '  {"customer": "ä", "id": 2}, {"customer": "ä", "amount": tru},\n'
        '  7,\n  {\n    "id": x\n}]'
    )
    assert details(send(shop, file.replace("\n", line_end), JSON)) == [
        'line 2, column 3: amount: expected a number, got "abc"',
        "line 6, column 59: expected a value",
        "line 7, column 3: expected an object, got 7",
        "line 9, column 11: expected a value",
    ]


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ('[{"id": 1}\n {"id": 2}]', "line 2, column 2: expected a comma or the end"),
        (
            '[{"id": 1}\n, {"customer": "ä", "id": 2} {"id": 3}]',
            "line 2, column 30: expected a comma or the end",
        ),
        ('[\n{"id": 1}', "line 2, column 10: the file ends within a document or its array"),
        ("id", "line 1, column 1: expected an array of documents, or a document"),
    ],
)
def test_an_array_that_is_malformed_between_its_rows_names_the_place(
    shop: DatasetClient, file: str, expected: str
) -> None:
    assert details(send(shop, file, JSON), "invalid_body") == [expected]


def test_lines_of_csv_are_reported_alike(shop: DatasetClient) -> None:
    file = 'Nr,Amount,Paid\n1,abc,true\n\n"2",1,"x\ny"\nx,1\n'
    answer = send(shop, file, columns=columns(Nr="id", Amount="amount", Paid="paid"))
    assert details(answer) == [
        'line 2: Amount: expected a number, got "abc"',
        'line 4: Paid: expected true or false, got "x\\ny"',
        "line 6: The record has 2 fields, but the first one has 3.",
    ]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ({"orders": {"id": 1, "colour": "red"}}, "orders.colour: The table has no such column."),
        ({"orders": {"count": 1}}, "orders.id: The key must have a value."),
        ({"orders": 5}, "orders: expected an object, got 5"),
        ({"shops": {"id": 1}}, "shops: The dataset has no such table."),
        ({"op": "insert"}, 'Each line must name one table, as in {"table": {…row…}}.'),
        (
            {"orders": {"id": 1}, "op": "upsert"},
            'op: expected insert, update or delete, got "upsert"',
        ),
        (
            {"orders": {"id": 1, "count": 1}, "op": "update", "null": ["count"]},
            "orders.count: The column has a value and is also listed in `null`.",
        ),
        (
            {"orders": {"id": 1, "count": 2}, "op": "delete"},
            "orders: a delete may only have the key's columns.",
        ),
        ([1], "expected an object, got an array"),
    ],
)
def test_a_line_of_another_form_is_named(shop: DatasetClient, line: Any, expected: str) -> None:
    body = as_lines([{"orders": {"id": 7}}, line])
    assert details(shop.send("uploads", body, NDJSON)) == [f"line 2: {expected}"]


def test_parts_of_a_key_are_named(server: str) -> None:
    files = make_dataset(server, **FILES)
    rows: list[Any] = [{"host": "a", "path": 1, "disk": 1}, {"host": "a"}, 5]
    assert details(
        files.send("uploads", as_lines({"sizes": {"file": row}} for row in rows), NDJSON)
    ) == [
        "line 1: sizes.file.path: expected a string, got 1",
        "line 2: sizes.file: expected an object with the fields host, path, disk",
        "line 3: sizes.file: expected an object with the fields host, path, disk, got 5",
    ]


@pytest.mark.parametrize("media_type", [NDJSON, JSON])
def test_lines_are_counted_in_large_files_and_many_errors_are_bounded(
    shop: DatasetClient, media_type: str
) -> None:
    rows = [json.dumps({"id": number, "customer": "x" * 100}) for number in range(20_000)]
    rows[15_000] = '{"id": "a"}'
    rows[19_000:] = ['{"id": "b"}'] * 1_000
    file = "\n".join(rows) if media_type == NDJSON else "[\n" + ",\n".join(rows) + "\n]"
    errors = details(send(shop, file, media_type, columns=columns(id="id")))
    place = "line 15001" if media_type == NDJSON else "line 15002, column 1"
    assert errors == [f'{place}: id: expected an integer of 64 bits, got "a"']
    bad = as_lines([{"id": "b"}] * 1_000)
    assert len(details(send(shop, bad, NDJSON, columns=columns(id="id")))) == 100
