"""Import of Parquet files into collections, and their previews."""

from __future__ import annotations

import datetime as dt
import io
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from tempfile import gettempdir
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analytics.hostile_bodies import mutants, repeated
from tests.caller import problem
from tests.documents.api.test_file_formats import previewed, send
from tests.documents.collection import CollectionClient, make_collection
from tests.own_server import another_server
from tests.peak_memory import peak_memory

PARQUET = "application/vnd.apache.parquet"
#: What a hostile file may add to the web server.
FLAT_MIB = 96


@pytest.fixture
def things(server: str) -> CollectionClient:
    return make_collection(server)


def parquet(columns: dict[str, object] | pa.Table, **options: Any) -> bytes:
    table = columns if isinstance(columns, pa.Table) else pa.table(columns)
    sink = io.BytesIO()
    pq.write_table(table, sink, **options)
    return sink.getvalue()


def canonical(things: CollectionClient) -> Any:
    answer = things.caller.post(
        f"{things.path}/query", {"filter": {}}, **{"Rillbase-EJSON": "canonical"}
    )
    return [item["document"] for item in answer.json()["items"]]


def test_each_type_becomes_the_type_of_documents_that_keeps_its_values(
    things: CollectionClient,
) -> None:
    moment = dt.datetime(2026, 11, 21, 8, 30, 0, 123456, dt.UTC).replace(tzinfo=None)
    columns: dict[str, object] = {
        "_id": ["a"],
        "small": pa.array([-7], pa.int16()),
        "long": pa.array([7], pa.int64()),
        "huge": pa.array([2**64 - 1], pa.uint64()),
        "double": [2.0],
        "nan": [float("nan")],
        "price": [Decimal("19.90")],
        "day": [dt.date(2026, 11, 21)],
        "local": pa.array([moment], pa.timestamp("us")),
        "zoned": pa.array([moment], pa.timestamp("ns", "Europe/Vienna")),
        "clock": [dt.time(8, 30, 0, 500_000)],
        "bytes": [b"\x00\xff"],
        "uuid": pa.array([UUID(int=5).bytes], pa.uuid()),
        "yes": [True],
        "tags": [["x", None, "z"]],
        "address": [{"city": "Wien", "zip": None, "at": [{"x": 1}]}],
        "attributes": pa.array([[("colour", "red")]], pa.map_(pa.string(), pa.string())),
        "by_number": pa.array([[(1, "one")]], pa.map_(pa.int32(), pa.string())),
    }
    job = send(things, parquet(columns), PARQUET).json()
    assert (job["written"], job["failed"], job["lines"]) == (1, 0, 1), job
    date = {"$date": {"$numberLong": "1795249800123"}}
    assert canonical(things) == [
        {
            "_id": "a",
            "small": {"$numberInt": "-7"},
            "long": {"$numberLong": "7"},
            "huge": {"$numberDecimal": "18446744073709551615"},
            "double": {"$numberDouble": "2.0"},
            "nan": {"$numberDouble": "NaN"},
            "price": {"$numberDecimal": "19.90"},
            "day": {"$date": {"$numberLong": "1795219200000"}},
            "local": date,
            "zoned": date,
            "clock": "08:30:00.5",
            "bytes": {"$binary": {"base64": "AP8=", "subType": "00"}},
            "uuid": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAABQ==", "subType": "04"}},
            "yes": True,
            "tags": ["x", None, "z"],
            "address": {"city": "Wien", "at": [{"x": {"$numberLong": "1"}}]},
            "attributes": {"colour": "red"},
            "by_number": [{"key": {"$numberInt": "1"}, "value": "one"}],
        }
    ]


def test_a_column_without_a_value_is_no_field(things: CollectionClient) -> None:
    send(things, parquet({"_id": [1, 2], "n": pa.array([None, 5], pa.int32())}), PARQUET)
    assert things.query() == [{"_id": 1}, {"_id": 2, "n": 5}]


def test_a_mapping_renames_skips_and_types_columns(things: CollectionClient) -> None:
    columns = [
        {"from": "Nr", "to": "_id"},
        {"from": "City", "to": "address.city"},
        {"from": "Added", "to": "added", "type": "date"},
    ]
    table = {"Nr": [1], "City": ["Wien"], "Added": ["2026-11-21"], "Secret": ["x"]}
    assert send(things, parquet(table), PARQUET, columns=columns).json()["written"] == 1
    assert things.query() == [
        {"_id": 1, "address": {"city": "Wien"}, "added": {"$date": "2026-11-21T00:00:00Z"}}
    ]
    missing = send(things, parquet(table), PARQUET, columns=[{"from": "Gone"}])
    assert "no such column" in problem(missing, 400, "invalid_parameter")["detail"]


def test_an_error_names_the_row_and_the_column_and_the_rest_is_imported(
    things: CollectionClient,
) -> None:
    precise = pa.array([Decimal(1), Decimal("9" * 38), Decimal(3)], pa.decimal128(38, 0))
    texts = pa.array([b"a", b"b", b"\xff"]).view(pa.string())
    columns: dict[str, object] = {"_id": [1, 2, 3], "amount": precise, "name": texts}
    columns["in"] = [[["x"]], [["y"]], [["z"]]]
    mapped = [{"from": "_id"}, {"from": "amount", "to": "money.amount"}, {"from": "name"}]
    job = send(things, parquet(columns), PARQUET, columns=mapped).json()
    assert [(e["line"], e["code"], e["pointer"]) for e in job["errors"]] == [
        (2, "invalid_document", "/money.amount"),
        (3, "invalid_document", "/name"),
    ]
    assert job["errors"][0]["detail"] == f"amount: {'9' * 38} has more than 34 digits."
    assert job["errors"][1]["detail"] == "name: The text is not UTF-8."
    assert things.ids() == [1]


def test_a_document_that_breaks_the_schema_is_an_error_of_its_row(server: str) -> None:
    strict = make_collection(server, schema={"properties": {"n": {"type": "string"}}})
    job = send(strict, parquet({"_id": [1, 2], "n": ["x", "y"]}), PARQUET).json()
    assert job["written"] == 2
    job = send(strict, parquet({"_id": [3, 4], "n": pa.array([None, 4])}), PARQUET).json()
    assert (job["written"], job["errors"][0]["line"], job["errors"][0]["pointer"]) == (1, 2, "/n")


def test_a_file_with_more_rows_than_a_part_is_imported_whole_and_in_order(
    things: CollectionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    from documents.transfer.parquet import parquet_records

    monkeypatch.setattr(parquet_records, "_PART_ROWS", 700)
    file = parquet({"_id": list(range(2_500))}, row_group_size=1_000)
    job = send(things, file, PARQUET).json()
    assert (job["written"], job["lines"], job["failed"]) == (2_500, 2_500, 0)
    again = send(things, file, PARQUET).json()
    assert [error["line"] for error in again["errors"][:3]] == [1, 2, 3]
    assert again["failed"] == 2_500


def test_an_interrupted_import_continues_after_the_last_committed_row(
    things: CollectionClient,
) -> None:
    from documents.models import ImportJob
    from foundation.scope import scoped

    file = parquet({"_id": [1, 2, 3]})
    first = send(things, parquet({"_id": [1, 2]}), PARQUET).json()
    with scoped(tenant_id=things.account.tenant.id):
        ImportJob.objects.filter(id=first["id"]).update(state="interrupted")
    job = send(things, file, PARQUET, resume=first["id"]).json()
    assert (job["lines"], job["written"], job["failed"]) == (3, 3, 0)
    assert things.ids() == [1, 2, 3]


def test_a_preview_shows_the_columns_with_their_types_and_the_first_rows(
    things: CollectionClient,
) -> None:
    file = parquet(
        {
            "_id": list(range(30)),
            "name": pa.array([f"n{n}" for n in range(30)]).dictionary_encode(),
            "price": [Decimal("1.50")] * 30,
            "tags": [["a"]] * 30,
        }
    )
    preview = previewed(things, file, PARQUET, whole="true").json()
    assert [(c["name"], c["to"], c["type"], c["file_type"]) for c in preview["columns"]] == [
        ("_id", "_id", None, "int64"),
        ("name", "name", None, "string"),
        ("price", "price", None, "decimal128(3, 2)"),
        ("tags", "tags", None, "list<string>"),
    ]
    assert preview["columns"][1]["values"] == ["n0", "n1", "n2"]
    assert preview["columns"][2]["values"] == ["1.50"] * 3
    assert (preview["rows"], preview["checked"], preview["failed"]) == (30, 30, 0)
    price = {"$numberDecimal": "1.50"}
    assert preview["documents"][0] == {
        "line": 1,
        "document": {"_id": 0, "name": "n0", "price": price, "tags": ["a"]},
    }
    columns = [{"from": "name", "to": "n", "type": "number"}]
    strict = previewed(things, file, PARQUET, whole="true", columns=columns).json()
    assert (strict["failed"], strict["errors"][0]["line"]) == (30, 1)
    assert [column["name"] for column in strict["columns"]] == ["_id", "name", "price", "tags"]
    assert things.ids() == []


def test_the_end_of_a_file_is_enough_for_its_columns(things: CollectionClient) -> None:
    file = parquet({"n": list(range(10_000)), "t": [str(n) for n in range(10_000)]})
    footer = int.from_bytes(file[-8:-4], "little") + 8
    preview = previewed(things, file[-footer:], PARQUET).json()
    assert [(c["name"], c["file_type"]) for c in preview["columns"]] == [
        ("n", "int64"),
        ("t", "string"),
    ]
    assert (preview["rows"], preview["documents"], preview["checked"]) == (10_000, [], 0)


@pytest.mark.parametrize("file", [b"", b"PAR1", b"PAR1" * 100, b"no Parquet at all"])
def test_a_file_that_cannot_be_read_is_refused_with_the_reason(
    things: CollectionClient, file: bytes
) -> None:
    for answer in (send(things, file, PARQUET), previewed(things, file, PARQUET, whole="true")):
        assert "Parquet file cannot be read" in problem(answer, 400, "invalid_body")["detail"]


def test_a_file_of_too_many_bytes_is_refused(things: CollectionClient) -> None:
    refusal = previewed(things, b"x" * (9 * 1024 * 1024), PARQUET, whole="true")
    assert "8388608" in problem(refusal, 413, "body_too_large")["detail"]


def test_names_that_are_no_names_of_fields_are_errors_and_no_failures(
    things: CollectionClient,
) -> None:
    columns = [f"c{n}" for n in range(1_001)]
    wide = pa.table({name: [1] for name in columns})
    assert (
        "1000 columns"
        in problem(send(things, parquet(wide), PARQUET), 400, "invalid_body")["detail"]
    )
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert (
        "same name" in problem(send(things, parquet(twice), PARQUET), 400, "invalid_body")["detail"]
    )
    odd = send(things, parquet({"$set": [1], "": [2], "a.b": [3]}), PARQUET).json()
    assert odd["written"] == 1
    document = things.query()[0]
    assert {n: v for n, v in document.items() if n != "_id"} == {
        "set": 1,
        "column": 2,
        "a": {"b": 3},
    }


def test_a_dictionary_of_long_texts_is_not_expanded(
    things: CollectionClient, settings_environment: pytest.MonkeyPatch
) -> None:
    settings_environment.setenv("RILLBASE_UPLOAD_MEMORY_MIB", "256")
    file = parquet(repeated(64 * 1024, 5_000).rename_columns(["n", "text"]), compression="zstd")
    assert len(file) < 65_536
    with peak_memory() as peak:
        preview = previewed(things, file, PARQUET, whole="true")
    assert preview.status_code == 200, preview.text
    assert preview.json()["checked"] <= 1_000
    assert peak.added_mib < 2 * FLAT_MIB


def test_runs_that_encode_many_rows_do_not_fill_memory(things: CollectionClient) -> None:
    file = parquet({"_id": np.zeros(30_000_000, np.int64)}, compression="zstd")
    with peak_memory() as peak:
        preview = previewed(things, file, PARQUET, whole="true")
    assert (preview.status_code, preview.json()["checked"], preview.json()["rows"]) == (
        200,
        1_000,
        30_000_000,
    )
    assert peak.added_mib < FLAT_MIB


def test_a_value_that_needs_more_memory_than_allowed_names_the_limit(
    things: CollectionClient, settings_environment: pytest.MonkeyPatch
) -> None:
    settings_environment.setenv("RILLBASE_UPLOAD_MEMORY_MIB", "128")
    file = parquet({"text": ["x" * 100_000_000]}, compression="zstd", use_dictionary=False)
    details = problem(send(things, file, PARQUET), 422, "upload_limit_exceeded")
    assert "memory" in details["detail"]


def test_mutated_files_are_imported_or_refused_and_never_fail(things: CollectionClient) -> None:
    files = [(name, body) for name, body, media_type in mutants(3, 120) if media_type == PARQUET]
    assert len(files) > 40

    def send_one(item: tuple[str, bytes]) -> tuple[str, Any]:
        return item[0], previewed(things, item[1], PARQUET, whole="true")

    with ThreadPoolExecutor(3) as threads, peak_memory() as peak:
        for name, answer in threads.map(send_one, files):
            assert answer.status_code in (200, 400, 422), f"{name}: {answer.text}"
    assert peak.added_mib < FLAT_MIB


def queried(things: CollectionClient, body: object) -> pa.Table:
    answer = things.caller.post(f"{things.path}/query", body, Accept=PARQUET)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == PARQUET
    assert f'filename="{things.name}.parquet"' in answer.headers["Content-Disposition"]
    return pq.read_table(io.BytesIO(answer.content))


def test_the_result_of_a_query_is_a_parquet_file_with_the_types_of_its_values(
    things: CollectionClient,
) -> None:
    things.insert_many(
        [
            {
                "_id": 1,
                "price": {"$numberDecimal": "19.90"},
                "at": {"$date": "2026-11-21T08:30:00Z"},
                "tags": ["a", "b"],
                "address": {"city": "Wien"},
                "mixed": 1,
                "ratio": 0.5,
            },
            {"_id": 2, "price": {"$numberDecimal": "7"}, "mixed": "two", "ratio": 3, "more": []},
        ]
    )
    table = queried(things, {"sort": {"_id": 1}})
    types = {field.name: str(field.type) for field in table.schema}
    assert types == {
        "_id": "int32",
        "price": "decimal128(4, 2)",
        "at": "timestamp[ms, tz=UTC]",
        "tags": "list<element: string>",
        "address": "struct<city: string>",
        "mixed": "string",
        "ratio": "double",
        "more": "list<element: string>",
    }
    first, second = table.to_pylist()
    assert first["price"] == Decimal("19.90")
    assert (first["tags"], first["address"], first["mixed"]) == (["a", "b"], {"city": "Wien"}, "1")
    assert (second["mixed"], second["ratio"], second["at"]) == ("two", 3.0, None)
    groups = {"group": {"by": ["mixed"], "measures": {"n": {"op": "count"}}}}
    assert queried(things, groups).column_names == ["mixed", "n"]
    assert queried(things, {"filter": {"_id": 9}}).num_rows == 0


def test_a_result_survives_a_round_trip_through_parquet(server: str) -> None:
    first, second = make_collection(server), make_collection(server)
    document = {
        "_id": {"$numberLong": "7"},
        "d": {"$numberDecimal": "1.5"},
        "u": {"$binary": {"base64": "AAAAAAAAAAAAAAAAAAAABQ==", "subType": "04"}},
        "at": {"$date": {"$numberLong": "-1"}},
        "in": {"list": [{"x": {"$numberInt": "1"}}, {"x": {"$numberInt": "2"}}]},
    }
    first.insert(document)
    answer = first.caller.post(f"{first.path}/query", {}, Accept=PARQUET)
    assert send(second, answer.content, PARQUET).json()["written"] == 1
    assert canonical(second) == canonical(first) == [document]


NUMBERS = st.one_of(
    st.integers(-(2**31), 2**31 - 1).map(lambda n: {"$numberInt": str(n)}),
    st.integers(-(2**63), 2**63 - 1).map(lambda n: {"$numberLong": str(n)}),
    st.floats(allow_nan=False).map(lambda n: {"$numberDouble": str(n).replace("inf", "Infinity")}),
    st.decimals(allow_nan=False, allow_infinity=False).map(lambda n: {"$numberDecimal": str(n)}),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.text(max_size=4),
    NUMBERS,
    st.integers(-(2**60), 2**60).map(lambda n: {"$date": {"$numberLong": str(n)}}),
    st.binary(max_size=3).map(
        lambda b: {"$binary": {"base64": b64encode(b).decode(), "subType": "00"}}
    ),
    st.just({"$minKey": 1}),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b", ""]), inner, max_size=3),
    ),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(st.lists(VALUES, max_size=6))
def test_values_of_any_types_become_a_column_that_can_be_written_and_read(
    values: list[Any],
) -> None:
    from documents.transfer.parquet.value_columns import value_column

    column = value_column(values)
    read = pq.read_table(io.BytesIO(parquet(pa.table({"c": column})))).column("c")
    assert read.is_null().to_pylist() == [value is None for value in values]


def test_a_collection_is_not_exported_as_parquet(things: CollectionClient) -> None:
    answer = things.caller.get(f"{things.path}/export?format=parquet")
    problem(answer, 400, "invalid_parameter")


def test_nothing_of_a_file_stays_on_the_disk(things: CollectionClient) -> None:
    send(things, parquet({"_id": [1]}), PARQUET)
    send(things, b"nonsense", PARQUET)
    queried(things, {})
    left = [*Path(gettempdir()).glob("rillbase-import-*")]
    left += Path(gettempdir()).glob("rillbase-export-*")
    assert left == []


def test_the_web_server_never_loads_the_decoder(things: CollectionClient) -> None:
    with another_server() as other:
        caller = replace(things.caller, base=other.url)
        answer = caller.call(
            "POST", f"{things.path}/import", raw=parquet({"_id": [1]}), Content_Type=PARQUET
        )
        assert answer.json()["written"] == 1, answer.text
        maps = Path(f"/proc/{other.process.pid}/maps").read_text()
    assert "libarrow" not in maps
