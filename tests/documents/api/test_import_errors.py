"""A rejected record names its line as a text editor counts it, the field, and the value."""

from __future__ import annotations

import pytest

from tests.documents.api.test_file_formats import CSV, JSON, NDJSON, previewed, send
from tests.documents.collection import CollectionClient, make_collection

SCHEMA = {
    "required": ["name"],
    "properties": {
        "price": {"type": "number", "minimum": 0},
        "tags": {"items": {"type": "string"}},
    },
}


@pytest.fixture
def products(server: str) -> CollectionClient:
    return make_collection(server, schema=SCHEMA)


def lines_of(products: CollectionClient, file: str, type_: str) -> list[str]:
    """Import a file, and return the errors as a person reads them."""
    job = send(products, file, type_).json()
    return [f"line {error['line']}: {error['detail']}" for error in job["errors"]]


def test_a_line_of_ndjson_names_the_fields_that_violate_the_schema(
    products: CollectionClient,
) -> None:
    file = (
        '{"_id":1,"name":"x"}\n\n{"_id":2,"name":"x","price":"abc"}\n'
        '{"_id":3,"price":-1,"tags":["a",5]}\n'
    )
    fields = [
        "name: the field is missing",
        "price: expected at least 0, got -1",
        "tags.1: expected a string, got 5",
    ]
    assert lines_of(products, file, NDJSON) == [
        'line 3: price: expected a number, got "abc"',
        "line 4: " + "; ".join(fields),
    ]


def test_a_long_value_is_shortened_and_many_fields_are_counted(products: CollectionClient) -> None:
    tags = ",".join("1" * 8)
    file = f'{{"name":"x","price":"{"y" * 100}"}}\n{{"name":"x","tags":[{tags}]}}\n'
    first, second = lines_of(products, file, NDJSON)
    assert first == f'line 1: price: expected a number, got "{"y" * 40}…"'
    assert second.endswith("tags.4: expected a string, got 1; and 3 more")


def test_a_line_that_is_not_json_names_its_own_line_and_column(products: CollectionClient) -> None:
    file = '{"_id":1,"name":"x"}\n{"_id":2,"name":nope}\n[]\n'
    assert lines_of(products, file, NDJSON) == [
        "line 2: name: expected a value (line 2, column 17)",
        "line 3: Each record must be a document, an object.",
    ]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_a_record_of_csv_is_at_the_line_on_which_it_begins(
    products: CollectionClient, line_end: str
) -> None:
    file = '_id,name,price\na,x,1\n"b\nb","two\nlines",2\nc,x,-1\n\nd,"y\ny",many\n'
    assert lines_of(products, file.replace("\n", line_end), CSV) == [
        # Without a mapping, one text makes the column a column of texts.
        'line 2: price: expected a number, got "1"',
        'line 3: price: expected a number, got "2"',
        'line 6: price: expected a number, got "-1"',
        'line 8: price: expected a number, got "many"',
    ]


def test_a_text_that_does_not_fit_its_column_is_quoted(products: CollectionClient) -> None:
    columns = [{"from": "name"}, {"from": "price", "type": "number"}]
    preview = previewed(products, "name,price\nx,abc\n", CSV, columns=columns, whole="true").json()
    assert [error["detail"] for error in preview["errors"]] == ['price: "abc" is not a number.']


def test_records_of_an_array_in_one_line_have_columns(products: CollectionClient) -> None:
    file = '[{"name":"ä","price":1},{"name":"x","price":"abc"}, {"name":tru}]'
    errors = send(products, file, JSON).json()["errors"]
    assert [(error["line"], error["column"], error["detail"]) for error in errors] == [
        (1, 25, 'price: expected a number, got "abc"'),
        (1, 53, "name: expected a value (line 1, column 61)"),
    ]
    assert file[24:].startswith('{"name":"x"')
    assert file[60:].startswith("tru")


def test_records_of_an_array_over_several_lines_have_the_lines_of_the_file(
    products: CollectionClient,
) -> None:
    file = (
        '[\n  {\n    "name": "x",\n    "price": "abc"\n  },\n'
        '  {\n    "price": 1,\n    "name": tru\n  },\n  7\n]'
    )
    lines = lines_of(products, file, JSON)
    assert lines == [
        'line 2: price: expected a number, got "abc"',
        "line 6: name: expected a value (line 8, column 13)",
        "line 10: Each record must be a document, an object.",
    ]
    assert lines_of(products, file.replace("\n", "\r\n"), JSON) == lines
