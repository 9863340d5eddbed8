"""Uploads: formats, atomicity, idempotence, and what is refused."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.analytics.dataset_client import ARROW, NDJSON, PARQUET, as_arrow, as_lines, make_dataset
from tests.caller import problem
from tests.full_disk import full_disk

if TYPE_CHECKING:
    from tests.analytics.dataset_client import DatasetClient, Json

ORDER = {"id": 1, "customer": "ada", "amount": 2.5, "count": 3, "paid": True}
FULL = {**ORDER, "day": "2026-11-21", "at": "2026-11-21T16:30:00.250000Z"}


def files(shop: DatasetClient) -> list[Path]:
    """Return the files in the dataset's folder."""
    from tests.analytics.dataset_client import files_of

    return [path for path in files_of(shop.id).rglob("*") if path.is_file()]


def test_lines_that_name_their_tables_are_visible_at_once(shop: DatasetClient) -> None:
    answer = shop.upload({"orders": FULL}, {"stock": {"place": "a", "item": 1, "pieces": 7}})
    assert (answer["status"], answer["state"], answer["stage"], answer["rows"]) == (
        "committed",
        1,
        "unsorted",
        2,
    )
    assert shop.rows("orders") == [FULL]
    assert shop.rows("stock") == [{"place": "a", "item": 1, "pieces": 7, "note": None}]
    assert shop.caller.get(f"{shop.path}/uploads/{answer['id']}").json() == answer


def test_an_update_keeps_columns_that_it_does_not_name(shop: DatasetClient) -> None:
    shop.insert("orders", FULL)
    shop.upload(
        {"orders": {"id": 1, "amount": 9.0}, "op": "update", "null": ["customer"]},
        {"orders": {"id": 2, "count": 5}, "op": "update"},
    )
    first, second = shop.rows("orders")
    assert first == {**FULL, "amount": 9.0, "customer": None}
    assert (second["count"], second["amount"], second["day"]) == (5, None, None)


def test_a_delete_removes_the_row_and_its_columns(shop: DatasetClient) -> None:
    shop.insert("orders", FULL)
    shop.upload({"orders": {"id": 1}, "op": "delete"})
    assert shop.rows("orders") == []
    shop.upload({"orders": {"id": 1, "count": 4}, "op": "update"})
    assert shop.rows("orders", columns=["id", "amount", "count"]) == [
        {"id": 1, "amount": None, "count": 4}
    ]


def test_the_later_of_two_lines_wins(shop: DatasetClient) -> None:
    shop.upload(
        {"orders": {"id": 1, "count": 1}},
        {"orders": {"id": 1}, "op": "delete"},
        {"orders": {"id": 1, "count": 2}},
        {"orders": {"id": 1, "amount": 1.0}, "op": "update"},
    )
    assert shop.rows("orders", columns=["count", "amount"]) == [{"count": 2, "amount": 1.0}]


def test_one_request_can_contain_arrow_streams_of_several_tables(shop: DatasetClient) -> None:
    orders = pa.table({"id": pa.array([1, 2], pa.int32()), "customer": ["ada", "bob"]})
    stock = pa.table({"place": ["x"], "item": [5], "pieces": pa.array([None], pa.int64())})
    gone = pa.table({"id": [2]})
    body = (
        as_arrow(orders, table="orders")
        + as_arrow(stock, table="stock", op="update")
        + as_arrow(gone, table="orders", op="delete")
    )
    answer = shop.send("uploads", body, ARROW)
    assert (answer.status_code, answer.json()["rows"]) == (201, 4)
    assert shop.rows("orders", columns=["id", "customer"]) == [{"id": 1, "customer": "ada"}]
    assert shop.rows("stock", columns=["item", "pieces"]) == [{"item": 5, "pieces": None}]


def test_the_url_determines_the_table_of_a_parquet_file(shop: DatasetClient) -> None:
    shop.insert("orders", FULL)
    rows = pa.table({"id": [1, 9], "amount": [7.5, 8.5]})
    sink = io.BytesIO()
    pq.write_table(rows, sink)
    answer = shop.send("uploads", sink.getvalue(), PARQUET, table="orders", op="update")
    assert answer.status_code == 201, answer.text
    first, second = shop.rows("orders")
    assert (first["amount"], first["customer"]) == (7.5, "ada")
    assert (second["id"], second["amount"], second["customer"]) == (9, 8.5, None)


def test_a_compressed_body_is_unpacked(shop: DatasetClient) -> None:
    body = gzip.compress(as_lines([{"orders": ORDER}]))
    answer = shop.caller.call(
        "POST",
        f"{shop.path}/uploads",
        raw=body,
        Content_Type=NDJSON,
        Content_Encoding="gzip",
    )
    assert answer.status_code == 201, answer.text
    assert len(shop.rows("orders")) == 1


def test_an_open_upload_becomes_visible_as_a_whole_when_committed(shop: DatasetClient) -> None:
    opened = shop.send("uploads", b"", NDJSON, open="true", id="night-1")
    assert (opened.status_code, opened.json()["status"]) == (201, "open")
    for number in range(3):
        line = as_lines([{"orders": {"id": number}}])
        assert shop.send("uploads/night-1:append", line, NDJSON).status_code == 200
    rows = as_arrow(pa.table({"place": ["a"], "item": [1]}))
    assert shop.send("uploads/night-1:append", rows, ARROW, table="stock").status_code == 200
    assert (shop.rows("orders"), shop.rows("stock")) == ([], [])
    answer = shop.send("uploads/night-1:commit", b"", NDJSON).json()
    assert (answer["status"], answer["rows"], answer["state"]) == ("committed", 4, 1)
    assert (len(shop.rows("orders")), len(shop.rows("stock"))) == (3, 1)
    assert shop.send("uploads/night-1:commit", b"", NDJSON).json() == answer
    late = shop.send("uploads/night-1:append", b"", NDJSON)
    problem(late, 409, "conflict")


def test_an_abandoned_upload_leaves_nothing(shop: DatasetClient) -> None:
    shop.send("uploads", b"", NDJSON, open="true", id="a")
    shop.send("uploads/a:append", as_lines([{"orders": ORDER}]), NDJSON)
    assert len(files(shop)) == 1
    answer = shop.send("uploads/a:abort", b"", NDJSON).json()
    assert (answer["status"], answer["rows"]) == ("aborted", 0)
    assert (shop.rows("orders"), files(shop)) == ([], [])
    problem(shop.send("uploads/a:commit", b"", NDJSON), 409, "conflict")
    assert shop.caller.get(shop.control_path).json()["stored_bytes"] == 0


def test_an_upload_counts_once_however_often_it_is_sent(shop: DatasetClient) -> None:
    first = shop.upload({"orders": ORDER}, id="u1")
    assert shop.upload({"orders": ORDER}, id="u1") == first
    other = shop.send("uploads", as_lines([{"orders": {"id": 2}}]), NDJSON, id="u1")
    problem(other, 422, "idempotency_mismatch")
    assert shop.query("orders")["state"] == 1
    assert len(files(shop)) == 1


def test_an_idempotency_key_names_an_upload_and_a_part(shop: DatasetClient) -> None:
    body = as_lines([{"orders": ORDER}])
    for _ in range(2):
        answer = shop.caller.call(
            "POST",
            f"{shop.path}/uploads",
            raw=body,
            Content_Type=NDJSON,
            Idempotency_Key="k",
        )
        assert answer.json()["state"] == 1
    shop.send("uploads", b"", NDJSON, open="true", id="a")
    for _ in range(2):
        answer = shop.caller.call(
            "POST",
            f"{shop.path}/uploads/a:append",
            raw=body,
            Content_Type=NDJSON,
            Idempotency_Key="p1",
        )
        assert answer.json()["rows"] == 1


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([{"orders": {"id": "one"}}], "wrong_type"),
        ([{"orders": {"id": 1.5}}], "wrong_type"),
        ([{"orders": {"id": 1, "colour": "red"}}], "unknown_column"),
        ([{"orders": {"count": 1}}], "no_key"),
        ([{"orders": {"id": 1, "count": 3_000_000_000}}], "wrong_type"),
        ([{"orders": {"id": 1, "day": "tomorrow"}}], "wrong_type"),
        ([{"orders": {"id": 1}, "stock": {"place": "a", "item": 1}}], "invalid"),
        ([{"shops": {"id": 1}}], "unknown_table"),
        ([{"orders": {"id": 1}, "op": "upsert"}], "wrong_type"),
        ([{"orders": {"id": 1, "count": 2}, "op": "delete"}], "invalid"),
        ([{"orders": {"id": 1}, "op": "update", "null": ["colour"]}], "invalid"),
        ([{"orders": {"id": 1, "count": 1}, "op": "update", "null": ["count"]}], "conflict"),
        ([{}], "invalid"),
    ],
)
def test_lines_that_do_not_fit_are_refused_and_nothing_is_kept(
    shop: DatasetClient, lines: list[Json], code: str
) -> None:
    good: Json = {"orders": {"id": 7}}
    answer = shop.send("uploads", as_lines([good, *lines]), NDJSON)
    details = problem(answer, 400, "invalid_upload")
    assert [error["code"] for error in details["errors"]] == [code]
    assert (shop.query("orders")["state"], files(shop)) == (0, [])


def test_text_that_is_no_json_or_no_utf8_is_refused(shop: DatasetClient) -> None:
    for body in (b"id,count\n1,2\n", b'{"orders": {"id": 1, "customer": "\xff"}}\n'):
        problem(shop.send("uploads", body, NDJSON), 400, "invalid_upload")
    assert files(shop) == []


@pytest.mark.parametrize(
    ("rows", "parameters", "code"),
    [
        (pa.table({"id": ["a"]}), {}, "wrong_type"),
        (pa.table({"id": [1.0]}), {}, "wrong_type"),
        (pa.table({"id": pa.array([2**63], pa.uint64())}), {}, "wrong_type"),
        (pa.table({"id": [1, None]}), {}, "no_key"),
        (pa.table({"count": [1]}), {}, "no_key"),
        (pa.table({"id": [1], "colour": ["red"]}), {}, "unknown_column"),
        (pa.table({"id": [1], "count": [1]}), {"op": "delete"}, "not_key"),
    ],
)
def test_columns_that_do_not_fit_are_named(
    shop: DatasetClient, rows: pa.Table, parameters: dict[str, str], code: str
) -> None:
    answer = shop.send("uploads", as_arrow(rows), ARROW, table="orders", **parameters)
    details = problem(answer, 400, "invalid_upload")
    assert [error["code"] for error in details["errors"]] == [code]
    assert files(shop) == []


def test_damaged_streams_and_files_are_refused(shop: DatasetClient) -> None:
    whole = as_arrow(pa.table({"id": list(range(1000))}))
    for body, kind in ((whole[:-500], ARROW), (b"PAR1" + whole, PARQUET), (b"\0" * 64, ARROW)):
        problem(shop.send("uploads", body, kind, table="orders"), 400, "invalid_upload")
    assert files(shop) == []


@pytest.mark.parametrize(
    "parameters",
    [{}, {"table": "shops"}, {"table": "orders", "op": "upsert"}, {"id": "a b"}, {"open": "yes"}],
)
def test_invalid_addresses_are_rejected(shop: DatasetClient, parameters: dict[str, str]) -> None:
    body = as_arrow(pa.table({"id": [1]}))
    problem(shop.send("uploads", body, ARROW, **parameters), 400, "invalid_parameter")


def test_other_media_types_are_refused(shop: DatasetClient) -> None:
    problem(shop.send("uploads", b"a,b", "text/html"), 415, "unsupported_media_type")


def test_a_body_that_is_too_large_is_refused(
    shop: DatasetClient, settings_environment: pytest.MonkeyPatch
) -> None:
    settings_environment.setenv("RILLBASE_IMPORT_MAX_BYTES", "2048")
    body = as_lines([{"orders": {"id": n, "customer": "x" * 100}} for n in range(50)])
    problem(shop.send("uploads", body, NDJSON), 413, "body_too_large")
    assert (shop.query("orders")["state"], files(shop)) == (0, [])


def test_a_full_disk_is_reported_and_leaves_nothing_half_written(shop: DatasetClient) -> None:
    shop.insert("orders", ORDER)
    before = set(files(shop))
    rows = pa.table({"id": list(range(300_000))})
    body = as_arrow(rows)
    for allowed in (1_000_000, len(body) + 1000):
        with full_disk(allowed):
            answer = shop.send("uploads", body, ARROW, table="orders")
        if allowed < len(body):
            problem(answer, 507, "storage_full")
            assert set(files(shop)) == before
    assert shop.query("orders")["state"] == 2


def test_the_quota_bounds_what_is_stored(server: str, shop: DatasetClient) -> None:
    from foundation.scope import scoped
    from tenants.models import Quota
    from tests.make import make_tenant

    account = make_tenant()
    with scoped(tenant_id=account.tenant.id):
        Quota.objects.using("staff").create(tenant=account.tenant, limits={"dataset_bytes": 3_000})
    small = make_dataset(server, account=account)
    small.insert("orders", ORDER)
    rows = [{"orders": {"id": n, "customer": str(n) * 9}} for n in range(1000)]
    problem(small.send("uploads", as_lines(rows), NDJSON), 403, "quota_exceeded")
    assert (small.query("orders")["state"], len(files(small))) == (1, 1)


def test_concurrent_uploads_get_numbers_without_gaps(shop: DatasetClient) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def send(number: int) -> Any:
        return shop.insert("orders", {"id": number})["state"]

    with ThreadPoolExecutor(8) as threads:
        states = sorted(threads.map(send, range(24)))
    assert states == list(range(1, 25))
    assert len(shop.rows("orders")) == 24


def test_end_users_and_strangers_upload_nothing(server: str, shop: DatasetClient) -> None:
    from tests.caller import with_key
    from tests.make import make_key, make_tenant

    reader = with_key(server, make_key(shop.account.tenant, scopes=["analytics:read"]))
    answer = reader.call("POST", f"{shop.path}/uploads", raw=b"", Content_Type=NDJSON)
    problem(answer, 403, "missing_scope")
    stranger = with_key(server, make_tenant().admin_key)
    problem(stranger.get(shop.path), 404, "not_found")


@pytest.mark.parametrize(
    "lines",
    ["null", " \tnull", "null\nnull", "\ufeffnull", "5", '"x"', "[]", '{"orders":{"id":1}}\n null',
     '{"orders":{"id":1}}\rnull', " " * (1024 * 1024 - 1) + "\n null"],
)  # fmt: skip
def test_a_line_that_is_no_object_is_refused_and_ends_nothing_else(
    shop: DatasetClient, lines: str
) -> None:
    refusal = shop.send("uploads", lines.encode(), NDJSON)
    assert (refusal.status_code, refusal.json()["code"]) == (400, "invalid_upload"), refusal.text
    assert shop.rows("orders") == []


def test_lines_may_begin_with_a_byte_order_mark_and_white_space(shop: DatasetClient) -> None:
    text = '\ufeff \r\n\n\t{"orders":{"id":1}}\r\n' + " " * 1024 * 1024 + '\n {"orders":{"id":2}} '
    answer = shop.send("uploads", text.encode(), NDJSON)
    assert answer.status_code == 201, answer.text
    assert [row["id"] for row in shop.rows("orders", order=[["id", 1]])] == [1, 2]
