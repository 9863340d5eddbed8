"""Import of CSV and JSON files with a mapping, previews, and export as CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from documents.backend import Backend
from tests.caller import problem
from tests.documents.collection import CollectionClient, make_collection

CSV, JSON, NDJSON = "text/csv", "application/json", "application/x-ndjson"


@pytest.fixture
def things(server: str) -> CollectionClient:
    return make_collection(server)


@pytest.fixture(scope="module")
def shared(server: str, backend: Backend) -> CollectionClient:
    return make_collection(server)


def send(things: CollectionClient, file: bytes | str, type_: str = CSV, **query: object) -> Any:
    body = file.encode() if isinstance(file, str) else file
    return things.caller.call(
        "POST", f"{things.path}/import?{parameters(query)}", raw=body, Content_Type=type_
    )


def previewed(
    things: CollectionClient, file: bytes | str, type_: str = CSV, **query: object
) -> Any:
    body = file.encode() if isinstance(file, str) else file
    return things.caller.call(
        "POST", f"{things.path}/import:preview?{parameters(query)}", raw=body, Content_Type=type_
    )


def parameters(query: dict[str, object]) -> str:
    texts = {n: v if isinstance(v, str) else json.dumps(v) for n, v in query.items()}
    return urlencode(texts)


def exported(things: CollectionClient, query: str = "", **headers: str) -> str:
    answer = things.caller.get(f"{things.path}/export{query}", **headers)
    assert answer.status_code == 200, answer.text
    return answer.content.decode()


def test_a_csv_file_becomes_documents_with_the_types_of_its_columns(
    things: CollectionClient,
) -> None:
    file = (
        "\ufeff_id,price,active,added,address.city,tags,note\r\n"
        'a,9.5,true,2026-11-21,Wien,"[1,2]","two\nlines"\r\n'
        'b,3,FALSE,2026-11-21T08:00:00+01:00,,,""\r\n'
    )
    job = send(things, file).json()
    assert (job["state"], job["written"], job["failed"]) == ("done", 2, 0)
    assert things.query() == [
        {
            "_id": "a",
            "price": 9.5,
            "active": True,
            "added": {"$date": "2026-11-21T00:00:00Z"},
            "address": {"city": "Wien"},
            "tags": [1, 2],
            "note": "two\nlines",
        },
        {
            "_id": "b",
            "price": 3,
            "active": False,
            "added": {"$date": "2026-11-21T07:00:00Z"},
            "note": "",
        },
    ]


def test_a_mapping_renames_skips_and_types_columns(things: CollectionClient) -> None:
    columns = [{"from": "Nr", "to": "_id", "type": "string"}, {"from": "Name", "to": "name"}]
    job = send(things, "Nr;Name;Secret\n007;Ada;x\n", columns=columns, delimiter=";").json()
    assert job["written"] == 1
    assert things.query() == [{"_id": "007", "name": "Ada"}]


def test_a_file_without_a_header_has_numbered_columns(things: CollectionClient) -> None:
    send(things, "1\tx\n2\ty\n", header="false", delimiter="tab")
    documents = [{"column1": d["column1"], "column2": d["column2"]} for d in things.query()]
    assert documents == [{"column1": 1, "column2": "x"}, {"column1": 2, "column2": "y"}]


def test_each_bad_record_is_an_error_with_its_line_and_the_rest_is_imported(
    things: CollectionClient,
) -> None:
    columns = [{"from": "_id"}, {"from": "n", "type": "number"}]
    file = b'_id,n\na,1\nb,many\n"c\nc",2\nd,1,2\ne"e,3\n\xff,4\nf,5\n"g,6\n'
    job = send(things, file, columns=columns).json()
    assert [(error["line"], error["code"]) for error in job["errors"]] == [
        (3, "invalid_document"),
        (6, "invalid_document"),
        (7, "invalid_document"),
        (8, "invalid_document"),
        (10, "invalid_document"),
    ]
    assert job["errors"][0]["pointer"] == "/n"
    assert '"many" is not a number' in job["errors"][0]["detail"]
    assert things.ids() == ["a", "c\nc", "f"]


def test_a_file_that_is_not_utf_8_is_refused_with_the_reason(things: CollectionClient) -> None:
    refusal = problem(send(things, "_id\na\n".encode("utf-16")), 400, "invalid_body")
    assert "UTF-16" in refusal["detail"]
    assert "UTF-8" in refusal["detail"]


def test_a_record_that_is_too_long_ends_the_import(things: CollectionClient) -> None:
    file = b'_id\na\n"' + b"x" * (17 * 1024 * 1024)
    refusal = problem(send(things, file), 400, "invalid_body")
    assert "line 3" in refusal["detail"]
    assert "quote" in refusal["detail"]


@pytest.mark.parametrize(
    "columns",
    [
        "[]",
        "{}",
        "[1]",
        '[{"from":"a"},{"from":"b","to":"a"}]',
        '[{"from":"a","to":"a.b"},{"from":"b","to":"a"}]',
        '[{"from":"a","to":"$a"}]',
        '[{"from":"a","type":"money"}]',
        '[{"from":"missing"}]',
        '[{"from":"a","more":1}]',
    ],
)
def test_a_mapping_that_cannot_hold_is_refused(shared: CollectionClient, columns: str) -> None:
    answer = send(shared, "a,b\n1,2\n", columns=columns)
    assert problem(answer, 400, "invalid_parameter")["errors"][0]["pointer"].startswith("columns")


def test_a_json_array_and_a_single_document_are_imported(things: CollectionClient) -> None:
    array = '[\n  {"_id": 1,\n   "a": {"b": [1, 2]}},\n  7,\n  {"_id": 2}\n]'
    job = send(things, array, JSON).json()
    assert (job["written"], job["failed"], job["errors"][0]["line"]) == (2, 1, 4)
    assert send(things, '{"_id": 3}', JSON).json()["written"] == 1
    assert things.ids() == [1, 2, 3]
    problem(send(things, '[{"_id": 4}', JSON), 400, "invalid_body")
    problem(send(things, "nonsense", JSON), 400, "invalid_body")


def test_a_mapping_applies_to_json_and_types_to_its_texts(things: CollectionClient) -> None:
    columns = [
        {"from": "id", "to": "_id"},
        {"from": "at", "to": "times.at", "type": "date"},
        {"from": "n", "type": "number"},
    ]
    lines = '{"id":1,"at":"2026-11-21","n":"5","x":0}\n{"id":2,"at":"soon"}\n{"id":3,"n":6}\n'
    job = send(things, lines, NDJSON, columns=columns).json()
    assert [(error["line"], error["pointer"]) for error in job["errors"]] == [(2, "/times.at")]
    assert things.query() == [
        {"_id": 1, "times": {"at": {"$date": "2026-11-21T00:00:00Z"}}, "n": 5},
        {"_id": 3, "n": 6},
    ]


def test_a_preview_shows_columns_documents_and_errors_and_writes_nothing(
    things: CollectionClient,
) -> None:
    rows = "".join(f"{number};x{number}\n" for number in range(30))
    preview = previewed(things, f"Nr;Name;Name\n{rows}".replace("\n", ";z\n").replace("e;z", "e"))
    assert preview.status_code == 200, preview.text
    body = preview.json()
    assert body["delimiter"] == ";"
    assert [(c["name"], c["to"], c["type"]) for c in body["columns"]] == [
        ("Nr", "Nr", "number"),
        ("Name", "Name", "string"),
        ("Name_2", "Name_2", "string"),
    ]
    assert body["columns"][1]["values"] == ["x0", "x1", "x2"]
    assert body["documents"][0] == {
        "line": 2,
        "document": {"Nr": 0, "Name": "x0", "Name_2": "z"},
    }
    assert (body["checked"], body["failed"]) == (30, 0)
    columns = [{"from": "Name", "to": "n", "type": "number"}]
    strict = previewed(things, "Name\n1\nx\n", columns=columns, whole="true").json()
    assert [error["line"] for error in strict["errors"]] == [3]
    assert strict["documents"] == [{"line": 2, "document": {"n": 1}}]
    assert things.ids() == []


def test_the_preview_of_a_part_leaves_out_its_last_record(things: CollectionClient) -> None:
    assert previewed(things, "a\n1\n2").json()["checked"] == 1
    assert previewed(things, "a\n1\n2", whole="true").json()["checked"] == 2
    assert previewed(things, '[{"a":1},{"a"', JSON).json()["checked"] == 1
    assert previewed(things, '{"a":1}\n{"a"', NDJSON).json()["checked"] == 1


def test_the_types_of_an_import_are_those_of_its_preview(things: CollectionClient) -> None:
    beginning = "n,pad\n" + "".join(f"{number},{'x' * 50}\n" for number in range(6_000))
    file = beginning + f"late,{'x' * 50}\n"
    guessed = previewed(things, file[: 256 * 1024]).json()["columns"]
    assert [column["type"] for column in guessed] == ["number", "string"]
    job = send(things, file).json()
    assert (job["written"], job["failed"]) == (6_000, 1)
    assert job["errors"][0]["line"] == 6_002


def test_an_export_as_csv_has_a_column_for_each_field(things: CollectionClient) -> None:
    things.insert_many(
        [
            {"_id": "a", "n": 1, "text": 'say "hi", twice'},
            {"_id": "b", "nested": {"x": [1]}, "at": {"$date": "2026-11-21T08:00:00Z"}},
            {"_id": "c", "text": "", "none": None, "yes": True, "late": 2.5},
        ]
    )
    answer = things.caller.get(f"{things.path}/export?format=csv")
    assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
    assert f'filename="{things.name}.csv"' in answer.headers["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO(answer.content.decode(), newline="")))
    assert list(rows[0]) == ["_id", "n", "text", "nested", "at", "none", "yes", "late"]
    assert rows[0]["text"] == 'say "hi", twice'
    assert rows[1]["nested"] == '{"x":[1]}'
    assert rows[1]["at"] == "2026-11-21T08:00:00Z"
    assert (rows[2]["none"], rows[2]["yes"], rows[2]["late"]) == ("", "true", "2.5")
    chosen = exported(things, "?format=csv&fields=nested.x,_id&delimiter=%3B")
    assert chosen.splitlines()[:3] == ["nested.x;_id", ";a", "[1];b"]


def test_texts_that_a_spreadsheet_takes_for_formulas_are_escaped(things: CollectionClient) -> None:
    things.insert_many([{"_id": f"{start}x", "n": -1} for start in "=+-@"])
    assert exported(things, "?format=csv").splitlines()[1:] == [
        "'+x,-1",
        "'-x,-1",
        "'=x,-1",
        "'@x,-1",
    ]
    assert "\r\n=x,-1\r\n" in exported(things, "?format=csv&formulas=keep")


def test_an_export_has_the_format_that_the_caller_accepts(things: CollectionClient) -> None:
    assert exported(things, "?format=json") == "[]\n"
    assert exported(things, Accept=CSV) == "_id\r\n"
    things.insert_many([{"_id": 1}, {"_id": 2}])
    assert json.loads(exported(things, "?format=json")) == [{"_id": 1}, {"_id": 2}]
    assert exported(things, Accept=CSV) == "_id\r\n1\r\n2\r\n"
    assert exported(things, Accept="*/*") == '{"_id":1}\n{"_id":2}\n'
    problem(things.caller.get(f"{things.path}/export?format=xml"), 400, "invalid_parameter")
    problem(things.caller.get(f"{things.path}/export?fields=a,a"), 400, "invalid_parameter")


def test_an_export_has_only_the_documents_that_the_caller_may_read(server: str) -> None:
    hiding = make_collection(server, rules={"read": {"public": True}})
    hiding.insert_many([{"_id": 1, "public": True}, {"_id": 2, "secret": "x"}])
    text = hiding.anonymous().get(f"{hiding.path}/export?format=csv").text
    assert text == "_id,public\r\n1,true\r\n"


def test_the_result_of_a_query_is_a_file_if_the_caller_accepts_one(
    things: CollectionClient,
) -> None:
    things.insert_many([{"_id": n, "even": n % 2 == 0} for n in range(4)])

    def ask(accept: str, body: object) -> str:
        answer = things.caller.post(f"{things.path}/query", body, Accept=accept)
        assert answer.status_code == 200, answer.text
        return answer.content.decode()

    body = {"filter": {"even": True}, "sort": {"_id": -1}, "projection": {"_id": 1}}
    assert ask(CSV, body) == "_id\r\n2\r\n0\r\n"
    assert ask(NDJSON, body) == '{"_id":2}\n{"_id":0}\n'
    groups = {"group": {"by": ["even"], "measures": {"n": {"op": "count"}}}}
    assert ask(CSV, groups) == "even,n\r\nfalse,2\r\ntrue,2\r\n"


def test_what_is_exported_as_csv_can_be_imported_again(server: str) -> None:
    first, second = make_collection(server), make_collection(server)
    first.insert_many([{"text": text, "n": n} for n, text in enumerate(["a", "", 'x"\r\n,y', "ü"])])
    assert send(second, exported(first, "?format=csv&formulas=keep")).json()["failed"] == 0
    assert second.query() == first.query()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["a", "b", "c d"]),
            st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_texts_of_any_kind_survive_export_and_import(
    shared: CollectionClient, documents: list[dict[str, str]]
) -> None:
    shared.caller.post(f"{shared.path}/documents:delete", {"filter": {}})
    shared.insert_many(documents)
    before = shared.query()
    text = exported(shared, "?format=csv&formulas=keep")
    shared.caller.post(f"{shared.path}/documents:delete", {"filter": {}})
    header = next(csv.reader(io.StringIO(text, newline="")))
    columns = [{"from": name, "type": "objectId" if name == "_id" else "string"} for name in header]
    assert send(shared, text, columns=columns).json()["failed"] == 0
    assert shared.query() == before


@settings(max_examples=60, deadline=None)
@given(
    st.one_of(st.binary(max_size=60), st.text(',;"\r\na1\\{}[]', max_size=60).map(str.encode)),
    st.sampled_from([CSV, JSON, NDJSON]),
)
def test_any_bytes_give_an_answer_and_no_failure(
    shared: CollectionClient, file: bytes, type_: str
) -> None:
    for answer in (previewed(shared, file, type_, whole="true"), send(shared, file, type_)):
        assert answer.status_code in (200, 400), answer.text


def test_a_reader_without_the_right_to_write_cannot_preview(server: str) -> None:
    things = make_collection(server)
    answer = things.anonymous().call(
        "POST", f"{things.path}/import:preview", raw=b"a\n1\n", Content_Type=CSV
    )
    assert answer.status_code in (200, 403)
    problem(send(things, "a\n1\n", "text/html"), 415, "unsupported_media_type")
    problem(send(things, "a\n1\n", delimiter=quote("x")), 400, "invalid_parameter")
