"""The Python SDK and datasets: what is uploaded in which form, and what comes back."""

from __future__ import annotations

import datetime
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from rillbase import Client, ServerError, SqlStatement, TableQuery
from rillbase.progress import Bar
from tests.sdk.proxy import Proxy

if TYPE_CHECKING:
    from tests.analytics.dataset_client import DatasetClient

pytestmark = pytest.mark.timeout(300)

AT = datetime.datetime(2026, 11, 21, 16, 30, tzinfo=datetime.UTC)
ORDERS = [
    {"id": 1, "customer": "ada", "amount": 2.5, "day": AT.date(), "at": AT},
    {"id": 2**60, "customer": "bob", "amount": 4.0, "day": AT.date(), "at": AT},
]
ALL = TableQuery(table="orders", columns=["id", "customer", "amount"], order=[("id", 1)])


@pytest.fixture
def shop(server: str) -> DatasetClient:
    from tests.analytics.dataset_client import make_dataset

    return make_dataset(server)


@pytest.fixture
def db(network: Proxy, shop: DatasetClient) -> Iterator[Client]:
    with Client(network.url, key=shop.account.admin_key) as db:
        yield db


def test_rows_frames_tables_and_files_are_uploaded_alike(
    db: Client, shop: DatasetClient, tmp_path: Path
) -> None:
    dataset = db.dataset(shop.name)
    assert dataset.upload(ORDERS, table="orders").state == 1
    expected = [
        {"id": 1, "customer": "ada", "amount": 2.5},
        {"id": 2**60, "customer": "bob", "amount": 4.0},
    ]
    assert dataset.query(ALL).rows == expected
    table = pa.Table.from_pylist(ORDERS)
    dataset.upload([{"id": order["id"]} for order in ORDERS], table="orders", op="delete")
    assert dataset.query(ALL).rows == []
    assert dataset.upload(table, table="orders").rows == 2
    assert dataset.query(ALL).rows == expected
    dataset.upload(pd.DataFrame([{"id": 1, "amount": 9.0}]), table="orders", op="update")
    assert dataset.query(ALL).rows[0] == {"id": 1, "customer": "ada", "amount": 9.0}
    file = tmp_path / "orders.parquet"
    pyarrow.parquet.write_table(table, file)
    dataset.upload(file, table="orders")
    assert dataset.query(ALL).rows == expected
    dataset.upload([{"id": 1, "customer": None}], table="orders", op="update")
    assert dataset.query(ALL).rows[0] == {"id": 1, "customer": None, "amount": 2.5}
    (tmp_path / "orders.txt").write_text("")
    with pytest.raises(ValueError, match="should end in"):
        dataset.upload(tmp_path / "orders.txt", table="orders")


def test_an_answer_becomes_a_table_with_the_types_of_its_columns(
    db: Client, shop: DatasetClient
) -> None:
    dataset = db.dataset(shop.name)
    dataset.upload(ORDERS, table="orders")
    everything = TableQuery(table="orders", order=[("id", 1)], freshness=0)
    table = dataset.to_arrow(everything)
    assert table.schema.field("at").type == pa.timestamp("us", "UTC")
    assert table.column("at").to_pylist() == [AT, AT]
    assert json.loads(table.schema.metadata[b"rillbase.state"]) == 1
    frame = dataset.to_pandas(everything)
    assert list(frame["customer"]) == ["ada", "bob"]
    answer = dataset.query(
        TableQuery(table="orders", group_by=["day"], aggregates={"n": {"op": "count"}})
    )
    assert (answer.state, answer.freshness_s, answer.rows) == (
        1,
        0,
        [{"day": "2026-11-21", "n": 2}],
    )
    assert answer.read["unsorted"]["rows"] == 2
    assert dataset.pipeline()["stages"]["unsorted"]["rows"] == 2


def test_sql_returns_rows_tables_and_frames(db: Client, shop: DatasetClient) -> None:
    dataset = db.dataset(shop.name)
    dataset.upload(ORDERS, table="orders")
    asked = SqlStatement(
        sql='SELECT id, day, amount * 2 AS twice FROM orders WHERE amount > $1 AND "at" = $2',
        parameters=[3, AT],
        freshness=0,
    )
    answer = dataset.sql(asked)
    assert answer.rows == [{"id": 2**60, "day": "2026-11-21", "twice": 8.0}]
    assert (answer.state, answer.freshness_s, answer.truncated) == (1, 0.0, False)
    assert [column["name"] for column in answer.columns] == ["id", "day", "twice"]
    table = dataset.to_arrow(asked)
    assert table.to_pylist() == [{"id": 2**60, "day": AT.date(), "twice": 8.0}]
    assert table.schema.metadata[b"rillbase.state"] == b"1"
    assert list(dataset.to_pandas(SqlStatement(sql="SELECT 1 AS one"))["one"]) == [1]
    assert dataset.sql("SELECT count(*) AS n FROM orders").rows == [{"n": 2}]
    with pytest.raises(ServerError) as refused:
        dataset.sql("SELECT * FROM elsewhere")
    assert refused.value.code == "invalid_sql"


def test_an_upload_reports_its_progress(db: Client, shop: DatasetClient) -> None:
    rows = pa.table({"id": range(50_000), "customer": [f"customer {n}" for n in range(50_000)]})
    received: list[tuple[int, int]] = []
    upload = db.dataset(shop.name).upload(
        rows, table="orders", progress=lambda sent, total: received.append((sent, total))
    )
    assert upload.rows == 50_000
    total = received[0][1]
    assert [sent for sent, _ in received] == sorted(sent for sent, _ in received)
    assert (received[0], received[-1], len(received) > 5) == ((0, total), (total, total), True)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_progress_bar_is_drawn_only_in_a_terminal() -> None:
    watched, unwatched = Terminal(), io.StringIO()
    for out in (watched, unwatched):
        bar = Bar("shop.orders", out)
        bar(0, 1_000)
        bar(1_000, 1_000)
        bar.end()
    assert "shop.orders" in watched.getvalue()
    assert "100%" in watched.getvalue()
    assert watched.getvalue().endswith("\n")
    assert unwatched.getvalue() == ""


def test_an_upload_that_is_cut_off_is_sent_again_and_counts_once(
    db: Client, network: Proxy, shop: DatasetClient
) -> None:
    rows = pa.table({"id": range(200_000), "customer": ["c" * 50] * 200_000})
    cuts = iter([True])

    def cut_once(sent: int, total: int) -> None:
        if sent > total / 2 and next(cuts, False):
            network.cut()

    upload = db.dataset(shop.name).upload(rows, table="orders", progress=cut_once)
    assert next(cuts, None) is None
    assert (upload.state, upload.rows) == (1, 200_000)


def test_a_large_upload_that_is_refused_says_why(shop: DatasetClient, network: Proxy) -> None:
    from tests.make import make_key

    rows = pa.table({"id": range(400_000), "customer": ["c" * 50] * 400_000})
    key = make_key(shop.account.tenant, scopes=["analytics:read"])
    with Client(network.url, key=key) as reader, pytest.raises(ServerError) as refused:
        reader.dataset(shop.name).upload(rows, table="orders")
    assert refused.value.status == 403
