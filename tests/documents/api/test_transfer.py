"""Import and export: streams of lines, in parts, resumable, and never silently truncated."""

from __future__ import annotations

import gzip
import json
import socket
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
import requests

from documents.transfer.importing import OF_ONE_TENANT
from tests.caller import Caller, problem
from tests.documents.collection import CollectionClient, make_collection
from tests.peak_memory import peak_memory
from tests.waiting import wait_until

NDJSON = "application/x-ndjson"


@pytest.fixture
def things(server: str) -> CollectionClient:
    return make_collection(server, indexes=[("n", [("n", 1)], False)])


def lines_of(documents: Iterable[object]) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


def send(things: CollectionClient, lines: bytes, query: str = "", **headers: str) -> Any:
    return things.caller.call(
        "POST", f"{things.path}/import{query}", raw=lines, **{"Content_Type": NDJSON, **headers}
    )


def exported(things: CollectionClient, query: str = "", **headers: str) -> list[Any]:
    answer = things.caller.get(f"{things.path}/export{query}", **headers)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == NDJSON
    return [json.loads(line) for line in answer.text.splitlines()]


def test_imported_documents_are_exported_in_the_order_of_ids(things: CollectionClient) -> None:
    documents = [{"_id": number, "n": number % 7} for number in range(2_500)]
    job = send(things, lines_of(reversed(documents))).json()
    assert (job["state"], job["lines"], job["written"]) == ("done", 2_500, 2_500)
    assert exported(things) == documents
    chosen = exported(things, "?filter=" + quote('{"n":3}'))
    assert chosen == [document for document in documents if document["n"] == 3]


def test_types_survive_export_and_import(things: CollectionClient) -> None:
    line = '{"_id":{"$numberInt":"1"},"d":{"$numberDecimal":"1.10"},"l":{"$numberLong":"5"}}'
    send(things, line.encode())
    answer = things.caller.get(f"{things.path}/export", Rillbase_EJSON="canonical")
    assert answer.text == line + "\n"


def test_broken_lines_are_reported_by_number_and_the_rest_is_imported(
    things: CollectionClient,
) -> None:
    lines = b'{"_id":1}\nnonsense\n\n{"_id":1}\n[]\n{"_id":[1]}\n{"_id":2}'
    job = send(things, lines).json()
    assert (job["state"], job["lines"], job["written"], job["failed"]) == ("done", 7, 2, 4)
    assert [(error["line"], error["code"]) for error in job["errors"]] == [
        (2, "invalid_json"),
        (4, "duplicate_id"),
        (5, "invalid_document"),
        (6, "invalid_id"),
    ]
    assert things.ids() == [1, 2]


def test_the_mode_determines_what_happens_to_existing_documents(things: CollectionClient) -> None:
    things.insert({"_id": "a", "n": 1})
    lines = lines_of([{"_id": "a", "n": 2}, {"_id": "b", "n": 2}])
    skipped = send(things, lines, "?mode=skip").json()
    assert (skipped["written"], skipped["skipped"], skipped["failed"]) == (1, 1, 0)
    assert things.query({"_id": "a"}) == [{"_id": "a", "n": 1}]
    replaced = send(things, lines, "?mode=upsert").json()
    assert (replaced["written"], replaced["skipped"]) == (2, 0)
    assert things.query({"_id": "a"}) == [{"_id": "a", "n": 2}]
    problem(send(things, lines, "?mode=guess"), 400, "invalid_parameter")


def test_compressed_lines_are_accepted(things: CollectionClient) -> None:
    lines = gzip.compress(lines_of({"_id": number} for number in range(50)))
    assert send(things, lines, Content_Encoding="gzip").json()["written"] == 50
    problem(send(things, lines[:-9], Content_Encoding="gzip"), 400, "invalid_body")
    problem(send(things, b"plain", Content_Encoding="gzip"), 400, "invalid_body")
    problem(send(things, lines, Content_Encoding="br"), 415, "unsupported_media_type")


def test_a_small_stream_that_decompresses_to_a_huge_line_is_rejected(
    things: CollectionClient,
) -> None:
    bomb = gzip.compress(b"x" * (40 * 1024 * 1024))
    problem(send(things, bomb, Content_Encoding="gzip"), 413, "body_too_large")
    assert things.ids() == []


def test_every_member_of_a_compressed_file_is_imported(things: CollectionClient) -> None:
    members = [gzip.compress(lines_of([{"_id": number}])) for number in range(300)]
    padding = b"\0" * 512
    answer = send(things, b"".join(members) + padding, Content_Encoding="gzip").json()
    assert (answer["written"], answer["lines"]) == (300, 300)


def test_data_after_a_compressed_stream_is_neither_stored_nor_ignored(
    things: CollectionClient,
) -> None:
    whole = gzip.compress(lines_of([{"_id": 1}]))
    details = problem(
        send(things, whole + b"x" * 1024, Content_Encoding="gzip"), 400, "invalid_body"
    )
    assert "damaged" in details["detail"]
    # Zeros are padding, however many: a decoder that kept them would copy them again and again.
    padded = whole + b"\0" * (32 * 1024 * 1024)
    with peak_memory() as peak:
        assert send(things, padded, Content_Encoding="gzip").json()["lines"] == 1
    assert peak.added_mib < 16


def test_blank_lines_start_no_transactions() -> None:
    from documents.transfer.import_record import json_record
    from documents.transfer.importing import ImportBatch

    batch = ImportBatch()
    for _ in range(100_000):
        batch.add(json_record(1, b"", None), "insert")
    assert (batch.is_full, batch.records) == (False, 100_000)


def test_an_interrupted_import_resumes_at_its_position(things: CollectionClient) -> None:
    documents = [{"_id": number} for number in range(3_500)]
    every = lines_of(documents)
    cut_off(things, every[: len(every) // 2], announced=len(every))
    wait_until(lambda: latest(things)["state"] == "interrupted", what="the job to notice")
    job = latest(things)
    assert 1_000 <= job["lines"] < 3_500
    assert job["written"] == len(things.ids(limit=10_000)) == job["lines"]
    done = send(things, every, f"?resume={job['id']}").json()
    assert (done["state"], done["lines"], done["failed"]) == ("done", 3_500, 0)
    assert exported(things) == documents
    problem(send(things, every, f"?resume={job['id']}"), 409, "conflict")


def test_an_import_ends_when_its_client_disconnects(
    things: CollectionClient,
) -> None:
    lines = 400
    every = gzip.compress((json.dumps({"text": " " * 1_000_000}).encode() + b"\n") * lines)
    cut_off(things, every, announced=len(every), content_encoding="gzip")
    wait_until(lambda: latest(things).get("state") == "interrupted", what="the job to notice")
    assert latest(things)["lines"] < lines


def latest(things: CollectionClient) -> Any:
    jobs = things.caller.get(f"{things.path}/imports").json()["items"]
    if not jobs:
        return {"lines": 0}
    job = jobs[0]
    return things.caller.get(f"{things.path}/imports/{job['id']}").json()


def cut_off(
    things: CollectionClient, body: bytes, announced: int, content_encoding: str = "identity"
) -> None:
    """Send a body, or a part of what was announced, and hang up."""
    with started_import(things, body, announced, content_encoding):
        wait_until(lambda: latest(things)["lines"] > 0, what="a part to be committed")


@contextmanager
def started_import(
    things: CollectionClient, body: bytes, announced: int, content_encoding: str = "identity"
) -> Iterator[socket.socket]:
    """Send a body, or a part of what was announced."""
    address = urlsplit(things.caller.base)
    key = things.caller.headers["Authorization"]
    head = (
        f"POST {things.path}/import HTTP/1.1\r\nHost: {address.netloc}\r\n"
        f"Authorization: {key}\r\nContent-Type: {NDJSON}\r\nContent-Length: {announced}\r\n"
        f"Content-Encoding: {content_encoding}\r\n\r\n"
    )
    with socket.create_connection((address.hostname or "", address.port or 0)) as connection:
        connection.sendall(head.encode() + body)
        yield connection


def test_a_tenant_s_further_imports_wait_unread_while_four_are_read(
    server: str, things: CollectionClient
) -> None:
    body = b'{"n":1}\n'

    def states() -> list[str]:
        jobs = things.caller.get(f"{things.path}/imports").json()["items"]
        return [job["state"] for job in jobs]

    with ExitStack() as connections:
        importing = [
            connections.enter_context(started_import(things, body, 2 * len(body)))
            for _ in range(OF_ONE_TENANT + 1)
        ]
        wait_until(lambda: len(states()) == OF_ONE_TENANT, what="four imports to begin")
        others = make_collection(server)
        assert send(others, body).json()["state"] == "done"
        assert states() == ["running"] * OF_ONE_TENANT
        for connection in importing:
            connection.sendall(body)
        wait_until(lambda: states() == ["done"] * len(importing), what="all imports to end")
    assert len(things.query()) == 2 * len(importing)


def test_an_export_obeys_the_read_rule(server: str) -> None:
    shown = make_collection(server, rules={"read": {"public": True}})
    shown.insert_many([{"_id": 1, "public": True}, {"_id": 2}])
    nobody = shown.anonymous()
    assert nobody.get(f"{shown.path}/export").text == '{"_id":1,"public":true}\n'
    hidden = make_collection(server)
    problem(hidden.anonymous().get(f"{hidden.path}/export"), 403, "forbidden")


def test_a_mistake_is_reported_before_anything_is_sent(things: CollectionClient) -> None:
    answer = things.caller.get(f"{things.path}/export?filter=" + quote('{"a":{"$x":1}}'))
    problem(answer, 400, "unsupported_operator")
    problem(things.caller.get("/v1/collections/nowhere/export"), 404, "not_found")
    problem(things.caller.get(f"{things.path}/imports/nonsense"), 404, "not_found")


def test_another_tenant_s_imports_are_not_found(server: str, things: CollectionClient) -> None:
    job = send(things, b'{"_id":1}').json()
    other = make_collection(server, name=things.name)
    stranger: Caller = other.caller
    problem(stranger.get(f"{other.path}/imports/{job['id']}"), 404, "not_found")
    problem(
        stranger.call(
            "POST", f"{other.path}/import?resume={job['id']}", raw=b"", Content_Type=NDJSON
        ),
        404,
        "not_found",
    )


def test_a_long_export_streams(things: CollectionClient) -> None:
    send(things, lines_of({"_id": number, "pad": "x" * 200} for number in range(5_000)))
    with requests.get(
        f"{things.caller.base}{things.path}/export",
        headers=things.caller.headers,
        stream=True,
        timeout=30,
    ) as answer:
        assert "Content-Length" not in answer.headers
        assert sum(1 for _ in answer.iter_lines()) == 5_000
