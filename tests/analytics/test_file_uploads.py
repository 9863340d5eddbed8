"""CSV and JSON files as uploads, mappings of their columns, and results of queries as files."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analytics.dataset_client import ARROW, NDJSON, PARQUET, as_arrow
from tests.caller import problem

if TYPE_CHECKING:
    from tests.analytics.dataset_client import DatasetClient, Json

CSV, JSON = "text/csv", "application/json"
FULL = {
    "id": 1,
    "customer": "ada",
    "amount": 2.5,
    "count": 3,
    "paid": True,
    "day": "2026-11-21",
    "at": "2026-11-21T16:30:00.250000Z",
}


def columns(**targets: str) -> str:
    """Return the parameter for columns of a file, each with its column of the table."""
    return quote(json.dumps([{"from": f, "to": t} for f, t in targets.items()]))


def send(shop: DatasetClient, file: str | bytes, media_type: str = CSV, **parameters: str) -> Any:
    body = file.encode() if isinstance(file, str) else file
    return shop.send("uploads", body, media_type, **{"table": "orders", **parameters})


def test_a_csv_file_is_read_with_the_types_of_the_table(shop: DatasetClient) -> None:
    file = (
        "\ufeffid,customer,amount,count,paid,day,at\r\n"
        "1,ada,2.5,3,true,2026-11-21,2026-11-21T17:30:00.25+01:00\r\n"
        '2,"",,,,,\r\n'
    )
    assert send(shop, file).json()["rows"] == 2
    empty = dict.fromkeys(FULL) | {"id": 2, "customer": ""}
    assert shop.rows("orders", order=[["id", 1]]) == [FULL, empty]


def test_a_mapping_renames_and_skips_columns_of_every_format(shop: DatasetClient) -> None:
    mapping = columns(Nr="id", Kunde="customer")
    assert send(shop, "Nr;Kunde;x\n1;ada;?\n", columns=mapping, delimiter=";").json()["rows"] == 1
    rows = [{"Nr": 2, "Kunde": "bob", "x": [1]}, {"Nr": 3, "Kunde": None}]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    assert send(shop, lines, NDJSON, columns=mapping).json()["rows"] == 2
    array = json.dumps([{"Nr": 4, "Kunde": "dan"}], indent=1)
    assert send(shop, array, JSON, columns=mapping).json()["rows"] == 1
    sink = io.BytesIO()
    pq.write_table(pa.table({"Kunde": ["eve"], "x": [[1]], "Nr": [5]}), sink)
    assert send(shop, sink.getvalue(), PARQUET, columns=mapping).json()["rows"] == 1
    result = shop.rows("orders", columns=["id", "customer"], order=[["id", 1]])
    assert [row["customer"] for row in result] == ["ada", "bob", None, "dan", "eve"]


def test_each_bad_line_of_a_csv_file_is_named_and_nothing_is_uploaded(shop: DatasetClient) -> None:
    file = 'id,amount,day\n1,many,2026-11-21\n2,1,"2026-11-21\n"\nx,1,soon\n"4"4,1,\n5,1\n'
    refusal = problem(send(shop, file), 400, "invalid_upload")
    assert [(error["pointer"], error["detail"].split(":")[0]) for error in refusal["errors"]] == [
        ("/orders/amount", "line 2"),
        ("/orders/day", "line 5"),
        ("/orders/id", "line 5"),
        ("/orders", "line 6"),
        ("/orders", "line 7"),
    ]
    assert shop.rows("orders") == []


def test_json_rows_are_an_array_or_one_row(shop: DatasetClient) -> None:
    assert send(shop, json.dumps([FULL, {"id": 2}]), JSON).json()["rows"] == 2
    assert (
        send(shop, json.dumps({"id": 3, "day": "2026-11-22"}, indent=2), JSON).json()["rows"] == 1
    )
    assert [row["id"] for row in shop.rows("orders", order=[["id", 1]])] == [1, 2, 3]
    problem(send(shop, '[{"id": 4}', JSON), 400, "invalid_body")
    problem(send(shop, '[{"id": 4, "strange": 1}]', JSON), 400, "invalid_upload")


def test_updates_and_deletes_can_be_uploaded_as_files(shop: DatasetClient) -> None:
    send(shop, json.dumps([FULL, {**FULL, "id": 2}]), JSON)
    send(shop, "id,amount\n1,9\n", op="update")
    send(shop, '[{"id": 2, "amount": 7}]', JSON, op="update")
    assert [(r["amount"], r["count"]) for r in shop.rows("orders", order=[["id", 1]])] == [
        (9.0, 3),
        (7.0, 3),
    ]
    send(shop, "id\n1\n", op="delete")
    send(shop, '[{"id": 2}]', JSON, op="delete")
    assert shop.rows("orders") == []


@pytest.mark.parametrize(
    ("file", "parameters"),
    [
        ("id,nobody\n1,2\n", {}),
        ("customer\nada\n", {}),
        ("id,customer\n1,a\n", {"columns": columns(missing="id")}),
        ("id,customer\n1,a\n", {"columns": columns(id="id", customer="id")}),
        ("id\n1\n", {"columns": quote('[{"from":"id","type":"number"}]')}),
        ("id\n1\n", {"delimiter": "x"}),
        ("id\n1\n", {"table": "nothing"}),
        ("id\n9223372036854775808\n", {}),
        ("id,count\n1,2147483648\n", {}),
        ("\n", {"table": ""}),
    ],
)
def test_what_does_not_fit_the_table_is_refused(
    shop: DatasetClient, file: str, parameters: dict[str, str]
) -> None:
    answer = send(shop, file, **parameters)
    assert answer.status_code == 400, answer.text
    assert shop.rows("orders") == []


def test_a_column_mapping_is_rejected_for_arrow_streams(shop: DatasetClient) -> None:
    body = as_arrow(pa.table({"id": [1]}), table="orders")
    problem(send(shop, body, ARROW, columns=columns(id="id")), 400, "invalid_parameter")


def test_a_preview_of_a_file_uploads_nothing(shop: DatasetClient) -> None:
    preview = shop.send("uploads:preview", b"Nr\tWhen\n1\t2026-11-21\n", CSV, whole="true").json()
    assert preview["delimiter"] == "tab"
    assert [(c["name"], c["type"]) for c in preview["columns"]] == [
        ("Nr", "number"),
        ("When", "date"),
    ]
    assert shop.rows("orders") == []


def test_a_large_csv_file_is_read_block_by_block(shop: DatasetClient) -> None:
    pad = "x" * 90
    lines = "".join(f"{number},{pad},{number / 4}\n" for number in range(60_000))
    assert send(shop, f"id,customer,amount\n{lines}").json()["rows"] == 60_000
    aggregates = {"n": {"op": "count"}, "sum": {"op": "sum", "column": "amount"}}
    (total,) = shop.rows("orders", group_by=[], aggregates=aggregates)
    assert total == {"n": 60_000, "sum": sum(range(60_000)) / 4}


def test_results_are_files_if_the_caller_accepts_one(shop: DatasetClient) -> None:
    send(shop, json.dumps([FULL, {"id": 2, "customer": "=1+1", "amount": -1}]), JSON)
    query = {"table": "orders", "columns": ["id", "customer", "amount", "at"], "order": [["id", 1]]}

    def ask(accept: str) -> Any:
        answer = shop.caller.post(f"{shop.path}/query", query, Accept=accept)
        assert answer.status_code == 200, answer.text
        return answer

    text = ask(CSV)
    assert text.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert 'filename="shop-orders.csv"' in text.headers["Content-Disposition"]
    assert text.content.decode() == (
        "id,customer,amount,at\r\n1,ada,2.5,2026-11-21T16:30:00.250000Z\r\n2,'=1+1,-1.0,\r\n"
    )
    lines = [json.loads(line) for line in ask(NDJSON).text.splitlines()]
    assert [line["id"] for line in lines] == [1, 2]
    table = pq.read_table(io.BytesIO(ask(PARQUET).content))
    assert table.column("customer").to_pylist() == ["ada", "=1+1"]


@settings(max_examples=40, deadline=None)
@given(
    st.one_of(st.binary(max_size=50), st.text('id,1"\r\n[]{}:a', max_size=60).map(str.encode)),
    st.sampled_from([CSV, JSON, NDJSON]),
)
def test_any_bytes_are_an_upload_or_an_error(any_shop: Json, file: bytes, media_type: str) -> None:
    shop: DatasetClient = any_shop["shop"]
    answer = send(
        shop, b"id\n" + file if media_type == CSV else file, media_type, columns=columns(id="id")
    )
    assert answer.status_code in (200, 201, 400, 413), answer.text
    assert "The decoder failed" not in answer.text


@pytest.fixture(scope="module")
def any_shop(server: str) -> dict[str, Any]:
    from tests.analytics.dataset_client import make_dataset

    return {"shop": make_dataset(server)}
