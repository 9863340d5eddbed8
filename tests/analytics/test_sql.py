"""SQL over a dataset, as its callers see it."""

from __future__ import annotations

import csv
import io
import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import requests

from foundation.sandbox import landlock
from tests.analytics import pipeline_steps
from tests.analytics.dataset_client import ARROW, NDJSON, PARQUET, make_dataset
from tests.caller import problem
from tests.stillness import Stillness
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.analytics.dataset_client import DatasetClient

ENDLESS = "SELECT count(*) FROM range(1e15::BIGINT) t(i) WHERE i % 7 = 8"


def send(
    shop: DatasetClient, statement: str, *parameters: object, **more: object
) -> requests.Response:
    body = {"sql": statement, "parameters": list(parameters), **more}
    return shop.caller.post(f"{shop.path}/sql", body)


def sql(shop: DatasetClient, statement: str, *parameters: object, **more: object) -> Any:
    answer = send(shop, statement, *parameters, **more)
    assert answer.status_code == 200, answer.text
    return answer.json()


def rows(shop: DatasetClient, statement: str, *parameters: object, **more: object) -> Any:
    return sql(shop, statement, *parameters, **more)["rows"]


def refusal(shop: DatasetClient, statement: str, *parameters: object, **more: object) -> str:
    error = problem(send(shop, statement, *parameters, **more), 400, "invalid_sql")
    assert error["errors"][0]["pointer"] == "/sql"
    return str(error["detail"])


def fill(shop: DatasetClient) -> None:
    shop.insert("orders", *({"id": n, "customer": "ab"[n % 2], "count": n} for n in range(10)))


def sql_workers() -> list[psutil.Process]:
    """Return the processes that execute statements: they have the lowest priority."""
    items = []
    for process in psutil.Process().children(recursive=True):
        try:
            if process.nice() == 19:
                items.append(process)
        except psutil.NoSuchProcess:
            continue
    return items


def test_a_statement_reads_rows_at_every_stage(shop: DatasetClient) -> None:
    fill(shop)
    pipeline_steps.drain(shop)
    change = {"orders": {"id": 2, "count": 50}, "op": "update"}
    shop.upload({"orders": {"id": 1}, "op": "delete"}, change)
    statement = (
        "SELECT customer, count(*) AS n, sum(count) AS total FROM orders GROUP BY ALL ORDER BY 1"
    )
    result = sql(shop, statement)
    assert result == {
        "state": 2,
        "freshness_s": 0.0,
        "engine": "duckdb",
        "columns": [
            {"name": "customer", "type": "VARCHAR"},
            {"name": "n", "type": "BIGINT"},
            {"name": "total", "type": "HUGEINT"},
        ],
        "rows": [
            {"customer": "a", "n": 5, "total": 68},
            {"customer": "b", "n": 4, "total": 24},
        ],
        "truncated": False,
    }
    merged = sql(shop, statement, freshness="any")
    assert (merged["state"], merged["rows"][1]) == (1, {"customer": "b", "n": 5, "total": 25})
    assert sql(shop, statement, state=1)["rows"] == merged["rows"]
    assert sql(shop, statement, state=0)["rows"] == []


def test_tables_are_joined_at_one_state(shop: DatasetClient) -> None:
    for number in range(4):
        shop.upload(
            {"orders": {"id": number, "count": number}},
            {"stock": {"place": "x", "item": number, "pieces": -number}},
        )
        if number == 1:
            pipeline_steps.drain(shop)
    statement = """
        WITH sums AS (SELECT sum(count) AS s FROM orders)
        SELECT s + sum(pieces) AS zero, count(*) AS n,
               max(row_number) AS last
        FROM sums, (SELECT *, row_number() OVER (ORDER BY item) AS row_number FROM stock)
        GROUP BY s"""
    assert rows(shop, statement) == [{"zero": 0, "n": 4, "last": 4}]
    assert rows(shop, statement, state=3) == [{"zero": 0, "n": 3, "last": 3}]
    joined = "SELECT item, count FROM stock JOIN orders ON item = id WHERE pieces < -1 ORDER BY 1"
    assert rows(shop, joined) == [{"item": 2, "count": 2}, {"item": 3, "count": 3}]


def test_secondary_views_are_tables(shop: DatasetClient) -> None:
    fill(shop)
    pipeline_steps.drain(shop)
    shop.upload({"orders": {"id": 3, "customer": "a"}, "op": "update"})
    statement = "SELECT id FROM orders__by_customer WHERE customer = 'b' ORDER BY id"
    assert [row["id"] for row in rows(shop, statement)] == [1, 5, 7, 9]
    assert [row["id"] for row in rows(shop, statement, freshness="any")] == [1, 3, 5, 7, 9]


def test_columns_that_files_lack_are_null(shop: DatasetClient) -> None:
    shop.insert("stock", {"place": "a", "item": 1})
    pipeline_steps.drain(shop)
    tables = shop.caller.get(shop.control_path).json()["tables"]
    tables["stock"]["columns"]["colour"] = "string"
    shop.caller.patch(shop.control_path, {"tables": tables})
    statement = "SELECT item, colour, coalesce(colour, '-') AS c FROM stock ORDER BY item"
    assert rows(shop, statement) == [{"item": 1, "colour": None, "c": "-"}]
    shop.insert("stock", {"place": "a", "item": 2, "colour": "red"})
    expected = [{"item": 1, "colour": None, "c": "-"}, {"item": 2, "colour": "red", "c": "red"}]
    assert rows(shop, statement) == expected
    pipeline_steps.drain(shop)
    assert rows(shop, statement) == expected


def test_an_empty_dataset_has_empty_tables(shop: DatasetClient) -> None:
    assert rows(shop, 'SELECT count(*) AS n, max("at") AS last FROM orders') == [
        {"n": 0, "last": None}
    ]
    assert rows(shop, "SELECT * FROM orders") == []
    assert rows(shop, "SELECT 1 AS one") == [{"one": 1}]


def test_columns_of_ids_show_their_keys(server: str) -> None:
    id_keys = {"page": "string", "file": {"host": "string", "path": "string"}}
    visits = {
        "columns": {"page": "id:page", "from": "id:page", "file": "id:file", "ms": "int64"},
        "key": ["page", "ms"],
        "views": {},
    }
    web = make_dataset(server, name="web", id_keys=id_keys, tables={"visits": visits})
    parts = {"host": "h", "path": "/x"}
    web.insert(
        "visits", {"page": "/a", "from": "/b", "file": parts, "ms": 1}, {"page": "/b", "ms": 2}
    )
    statement = 'SELECT page, "from", file, file.path AS p, ms FROM visits ORDER BY page'
    expected = [
        {"page": "/a", "from": "/b", "file": parts, "p": "/x", "ms": 1},
        {"page": "/b", "from": None, "file": None, "p": None, "ms": 2},
    ]
    for _ in range(2):
        assert rows(web, statement) == expected
        assert rows(web, "SELECT * FROM visits WHERE page = '/b'")[0]["ms"] == 2
        assert rows(web, "SELECT key, id FROM page ORDER BY id") == [
            {"key": "/a", "id": 0},
            {"key": "/b", "id": 1},
        ]
        assert rows(web, "SELECT sum(ms) AS ms FROM visits") == [{"ms": 3}]
        pipeline_steps.drain(web)


def test_parameters_are_values_and_never_code(shop: DatasetClient) -> None:
    fill(shop)
    statement = "SELECT count(*) AS n FROM orders WHERE customer = $1 AND id >= $2"
    assert rows(shop, statement, "a", 4) == [{"n": 3}]
    assert rows(shop, statement, "a' OR '1' = '1", 0) == [{"n": 0}]
    assert rows(shop, "SELECT ? AS a, ? AS b, ? AS c", None, True, 1.5) == [
        {"a": None, "b": True, "c": 1.5}
    ]
    named = {
        "sql": "SELECT $low + 1 AS x, list_contains($ids, 7) AS y",
        "parameters": {"low": 2, "ids": [7, 8]},
    }
    assert shop.caller.post(f"{shop.path}/sql", named).json()["rows"] == [{"x": 3, "y": True}]
    moment = {"$date": "2026-11-01T01:00:00+01:00"}
    typed = "SELECT $1 = TIMESTAMPTZ '2026-11-01 00:00:00Z' AS t, $2 AS n, typeof($3) AS d"
    assert rows(
        shop, typed, moment, {"$numberLong": "9007199254740993"}, {"$numberDecimal": "1.50"}
    ) == [{"t": True, "n": {"$numberLong": "9007199254740993"}, "d": "DECIMAL(3,2)"}]
    canonical = {"$date": {"$numberLong": "-1"}}
    assert rows(shop, "SELECT $1 AS t", canonical) == [{"t": "1969-12-31T23:59:59.999000Z"}]
    assert "parameter" in refusal(shop, "SELECT $1")
    for wrong in (
        {"a": 1},
        {"$date": "yesterday"},
        {"$numberLong": "x"},
        2**200,
        {"$date": {"$numberLong": "9" * 30}},
    ):
        error = problem(send(shop, "SELECT $1", wrong), 400, "invalid_body")
        assert error["errors"][0]["pointer"].startswith("/parameters/0")


def test_values_are_exact_in_json(shop: DatasetClient) -> None:
    shop.upload(
        {
            "orders": {
                "id": 1,
                "customer": 'é "quoted"',
                "amount": 0.1,
                "count": -7,
                "paid": True,
                "day": "2026-11-21",
                "at": "2026-11-21T16:30:00.25Z",
            }
        },
        {"orders": {"id": 2}},
    )
    assert rows(shop, "SELECT * FROM orders ORDER BY id") == shop.rows("orders")
    statement = """SELECT 9007199254740993 AS long, 170141183460469231731687303715884105727 AS huge,
        1.10::DECIMAL(5,2) AS price, 'NaN'::DOUBLE AS nan, TIME '10:00:00.5' AS time,
        TIMESTAMP '2026-01-02 03:04:05' AS local, INTERVAL '1 month 2 days 0.5 seconds' AS span,
        'ab'::BLOB AS bytes, [1, NULL, 3] AS list, {'a': 1, 'b': [DATE '2026-01-01']} AS struct,
        MAP {'k': 1.5::DOUBLE} AS map, NULL AS nothing, 1 AS a, 2 AS a, 'x'::ENUM('x', 'y') AS e,
        uuid() IS NOT NULL AS u, '{"j": [1]}'::JSON AS j"""
    assert rows(shop, statement) == [
        {
            "long": {"$numberLong": "9007199254740993"},
            "huge": {"$numberDecimal": "170141183460469231731687303715884105727"},
            "price": {"$numberDecimal": "1.10"},
            "nan": {"$numberDouble": "NaN"},
            "time": "10:00:00.500000",
            "local": "2026-01-02T03:04:05.000000",
            "span": "P1M2DT0.5S",
            "bytes": {"$binary": {"base64": "YWI=", "subType": "00"}},
            "list": [1, None, 3],
            "struct": {"a": 1, "b": ["2026-01-01"]},
            "map": [["k", 1.5]],
            "nothing": None,
            "a": 1,
            "a_1": 2,
            "e": "x",
            "u": True,
            "j": '{"j": [1]}',
        }
    ]
    assert "cast it to VARCHAR" in refusal(shop, "SELECT '101'::BIT AS b")
    far = problem(send(shop, "SELECT 'infinity'::TIMESTAMP AS t"), 400, "evaluation_failed")
    assert "cast it to VARCHAR" in far["detail"]


@pytest.mark.parametrize("stage", ["unsorted", "authority"])
def test_results_are_available_in_five_formats(shop: DatasetClient, stage: str) -> None:
    fill(shop)
    if stage == "authority":
        pipeline_steps.drain(shop)
    statement = "SELECT id, customer, count * 1.5 AS x FROM orders ORDER BY id LIMIT 3"
    expected = [(0, "a", "0.0"), (1, "b", "1.5"), (2, "a", "3.0")]
    path = f"{shop.path}/sql"
    answer = shop.caller.post(path, {"sql": statement}, Accept="text/csv")
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert answer.headers["Rillbase-State"] == "1"
    items = list(csv.reader(io.StringIO(answer.text)))
    assert [tuple(line) for line in items] == [
        ("id", "customer", "x"),
        *((str(i), c, x) for i, c, x in expected),
    ]
    answer = shop.caller.post(path, {"sql": statement}, Accept=NDJSON)
    assert [json.loads(line)["id"] for line in answer.text.splitlines()] == [0, 1, 2]
    for media_type, named in ((ARROW, {}), ("*/*", {"format": "arrow"})):
        answer = shop.caller.post(path, {"sql": statement, **named}, Accept=media_type)
        assert answer.headers["Content-Type"] == ARROW
        table = pa.ipc.open_stream(answer.content).read_all()
        assert table["id"].to_pylist() == [0, 1, 2]
        marks = {b"state": b"1", b"freshness_s": b"0.0", b"engine": b'"duckdb"'}
        assert table.schema.metadata == {b"rillbase." + n: value for n, value in marks.items()}
    answer = shop.caller.post(path, {"sql": statement, "format": "parquet"})
    assert answer.headers["Content-Type"] == PARQUET
    assert answer.headers["Content-Disposition"] == 'attachment; filename="shop.parquet"'
    assert pq.read_table(io.BytesIO(answer.content))["customer"].to_pylist() == ["a", "b", "a"]
    for form in ("csv", "ndjson", "arrow", "parquet"):
        answer = shop.caller.post(
            path, {"sql": "SELECT id FROM orders WHERE false", "format": form}
        )
        assert answer.status_code == 200, form
    wrong = problem(
        shop.caller.post(path, {"sql": statement, "format": "xml"}), 400, "invalid_body"
    )
    assert wrong["errors"][0]["pointer"] == "/format"


def test_a_large_result_is_complete_in_every_format(shop: DatasetClient) -> None:
    statement, count = "SELECT i, i % 10 AS j, 'text ' || i AS t FROM range(200000) x(i)", 200_000
    path = f"{shop.path}/sql"
    answer = shop.caller.post(path, {"sql": statement, "format": "arrow"})
    table = pa.ipc.open_stream(answer.content).read_all()
    assert (table.num_rows, pa.compute.sum(table["i"]).as_py()) == (count, count * (count - 1) // 2)
    answer = shop.caller.post(path, {"sql": statement, "format": "parquet"})
    assert pq.read_metadata(io.BytesIO(answer.content)).num_rows == count
    answer = shop.caller.post(path, {"sql": statement, "format": "csv"})
    assert answer.text.count("\n") == count + 1
    answer = shop.caller.post(path, {"sql": statement, "format": "ndjson"})
    assert json.loads(answer.text.splitlines()[-1]) == {"i": 199_999, "j": 9, "t": "text 199999"}


def test_a_result_that_its_limit_truncates_is_marked_as_truncated(shop: DatasetClient) -> None:
    statement = "SELECT i FROM range(1_000_000_000_000) t(i)"
    result = sql(shop, statement, limit=3)
    assert (result["rows"], result["truncated"]) == ([{"i": 0}, {"i": 1}, {"i": 2}], True)
    assert len(rows(shop, statement)) == 1_000
    assert not sql(shop, "SELECT i FROM range(3) t(i)", limit=3)["truncated"]
    for name, value in (("limit", 0), ("limit", 10_001), ("timeout", 0), ("timeout", 301)):
        result = problem(send(shop, statement, **{name: value}), 400, "invalid_body")
        assert result["errors"][0]["pointer"] == f"/{name}"


def test_errors_name_the_place_and_what_is_wrong(shop: DatasetClient) -> None:
    assert refusal(shop, "SELECT 1,\n  read_text('x')") == (
        "Line 2, column 3: The function 'read_text' is not available."
    )
    assert refusal(shop, "SELECT *\nFROM ordres") == (
        "Line 2, column 6: The table 'ordres' does not exist."
    )
    assert refusal(shop, "SELECT 'é',\n x FROM orders").startswith("Line 2: ")
    assert '"x"' in refusal(shop, "SELECT x FROM orders")
    assert "syntax error" in refusal(shop, "SELECT * FORM orders")
    assert refusal(shop, "DELETE FROM orders") == "Only SELECT statements are allowed."
    fill(shop)
    failed = problem(send(shop, "SELECT customer::INT AS n FROM orders"), 400, "evaluation_failed")
    assert "Could not convert string 'a' to INT32" in failed["detail"]
    for body in ({}, {"sql": ""}, {"sql": 1}, {"sql": "SELECT 1", "parameters": 1}):
        problem(shop.caller.post(f"{shop.path}/sql", body), 400, "invalid_body")
    unknown = problem(send(shop, "SELECT 1", engine="x"), 400, "invalid_body")
    assert unknown["errors"][0]["pointer"] == "/engine"
    both = problem(send(shop, "SELECT 1 FROM orders", state=1, freshness=0), 400, "invalid_body")
    assert both["errors"][0]["pointer"] == "/state"
    future = send(shop, "SELECT 1 FROM orders", state=99)
    assert "newest state" in problem(future, 400, "invalid_body")["detail"]


def test_a_statement_ends_at_its_timeout(shop: DatasetClient) -> None:
    error = problem(send(shop, ENDLESS, timeout=0.5), 422, "query_too_expensive")
    assert error["detail"] == "The statement takes longer than its timeout."
    assert rows(shop, "SELECT 1 AS x") == [{"x": 1}]


def test_a_caller_that_disconnects_ends_its_statement(shop: DatasetClient) -> None:
    body = json.dumps({"sql": ENDLESS, "timeout": 250}).encode()
    with connected(shop) as connection:
        connection.sendall(request_of(shop, body))
        wait_until(lambda: bool(sql_workers()), what="the statement to run")
    wait_until(lambda: not sql_workers(), what="the statement to end")


def test_a_caller_that_stops_reading_holds_no_result_in_the_server(shop: DatasetClient) -> None:
    statement = "SELECT i, repeat('x', 1000) AS t FROM range(10_000_000) t(i)"
    body = json.dumps({"sql": statement, "format": "ndjson", "timeout": 250}).encode()
    server = psutil.Process()
    with connected(shop) as connection:
        connection.sendall(request_of(shop, body))
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        before = server.memory_info().rss
        (worker,) = sql_workers()
        wait_until(Stillness(worker), what="the worker to wait for its reader")
        assert server.memory_info().rss - before < 32 * 1024 * 1024
    wait_until(lambda: not sql_workers(), what="the statement to end")


def connected(shop: DatasetClient) -> socket.socket:
    address = urlsplit(shop.caller.base)
    assert address.hostname
    return socket.create_connection((address.hostname, address.port or 80), timeout=30)


def request_of(shop: DatasetClient, body: bytes) -> bytes:
    headers = {
        "Host": urlsplit(shop.caller.base).netloc,
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **shop.caller.headers,
    }
    lines = [f"POST {shop.path}/sql HTTP/1.1", *(f"{n}: {v}" for n, v in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def test_statements_of_one_tenant_leave_a_worker_to_others(
    server: str, shop: DatasetClient
) -> None:
    other = make_dataset(server)
    fill(other)
    done = threading.Event()

    def occupy() -> None:
        while not done.is_set():
            problem(send(shop, ENDLESS, timeout=2), 422, "query_too_expensive")

    with ThreadPoolExecutor(4) as threads:
        busy = [threads.submit(occupy) for _ in range(4)]
        try:
            wait_until(lambda: len(sql_workers()) >= 2, what="all but one worker to be busy")
            for _ in range(3):
                assert rows(other, "SELECT count(*) AS n FROM orders") == [{"n": 10}]
        finally:
            done.set()
        for item in busy:
            item.result()


def test_a_dataset_that_does_not_exist_is_not_found(shop: DatasetClient) -> None:
    answer = shop.caller.post("/v1/datasets/nothing/sql", {"sql": "SELECT 1"})
    problem(answer, 404, "not_found")


def test_a_kernel_that_cannot_isolate_a_statement_executes_none(
    shop: DatasetClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "version", lambda: landlock.MIN_VERSION - 1)
    assert "Linux 6.2" in problem(send(shop, "SELECT 1"), 503, "unavailable")["detail"]
