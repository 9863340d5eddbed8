"""An import with an idempotency key takes effect once, however often it is sent."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from documents.store.write import WriteCall, WriteResult
from documents.store.writer import write
from documents.transfer import claimed_import, importing
from tests.caller import problem
from tests.documents.collection import CollectionClient, make_collection

NDJSON = "application/x-ndjson"
COUNT = 40


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importing, "BATCH_RECORDS", 5)


@pytest.fixture
def collection(server: str) -> CollectionClient:
    return make_collection(server, indexes=[("unique", [("u", 1)], True)])


def lines_of(numbers: range, **more: object) -> bytes:
    """Return documents without `_id`: one that is imported twice is there twice."""
    return b"".join(json.dumps({"n": n, "u": n, **more}).encode() + b"\n" for n in numbers)


def send(
    collection: CollectionClient, body: bytes, key: str = "k", query: str = "", **headers: str
) -> requests.Response:
    headers = {"Content_Type": NDJSON, "Idempotency_Key": key, **headers}
    return collection.caller.call("POST", f"{collection.path}/import{query}", raw=body, **headers)


def imported(collection: CollectionClient) -> list[int]:
    return sorted(document["n"] for document in collection.query(limit=1_000))


class Crash:
    """Fails the n-th write of the server, before or after it is committed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, phase: str) -> None:
        self._left = at
        self._phase = phase
        monkeypatch.setattr(claimed_import, "write", self._write)

    async def _write(self, call: WriteCall) -> WriteResult:
        self._left -= 1
        if self._left:
            return await write(call)
        if self._phase == "after":
            await write(call)
        raise RuntimeError("the process ends here")


def crash(
    collection: CollectionClient, monkeypatch: pytest.MonkeyPatch, at: int, phase: str = "after"
) -> None:
    """Send a file to a server that crashes."""
    with monkeypatch.context() as crashing:
        Crash(crashing, at, phase)
        assert send(collection, lines_of(range(COUNT))).status_code == 500


def test_a_repeated_import_returns_the_first_response(collection: CollectionClient) -> None:
    first, again = (send(collection, lines_of(range(COUNT))) for _ in range(2))
    assert (first.json()["written"], again.content) == (COUNT, first.content)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.headers["Location"] == first.headers["Location"]
    assert imported(collection) == list(range(COUNT))


@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("at", [1, 2, 5, 9, 11])
def test_a_retry_continues_behind_the_last_batch(
    collection: CollectionClient, monkeypatch: pytest.MonkeyPatch, at: int, phase: str
) -> None:
    """The writes: the job, eight batches, what is left of the records, and the response."""
    crash(collection, monkeypatch, at, phase)
    done = send(collection, lines_of(range(COUNT))).json()
    assert (done["state"], done["lines"], done["written"]) == ("done", COUNT, COUNT)
    assert imported(collection) == list(range(COUNT))
    assert len(collection.caller.get(f"{collection.path}/imports").json()["items"]) <= 2


@pytest.mark.parametrize("at", range(2, 20))
def test_a_divided_batch_is_continued_with_its_next_part(
    collection: CollectionClient, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    collection.insert({"u": 7, "n": -1})
    with monkeypatch.context() as crashing:
        Crash(crashing, at, "after")
        send(collection, lines_of(range(15)))
    done = send(collection, lines_of(range(15))).json()
    assert (done["lines"], done["written"], done["failed"]) == (15, 14, 1)
    assert [error["line"] for error in done["errors"]] == [8]
    assert imported(collection) == [-1, *range(7), *range(8, 15)]


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_concurrent_imports_with_one_key_write_each_record_once(
    collection: CollectionClient, encoding: str
) -> None:
    body = lines_of(range(COUNT))
    body = gzip.compress(body) if encoding == "gzip" else body
    with ThreadPoolExecutor(8) as callers:
        answers = list(
            callers.map(lambda _: send(collection, body, Content_Encoding=encoding), range(16))
        )
    assert Counter(answer.status_code for answer in answers).keys() <= {200, 409}
    done = send(collection, body, Content_Encoding=encoding)
    assert (done.status_code, done.json()["written"]) == (200, COUNT)
    assert imported(collection) == list(range(COUNT))


@pytest.mark.parametrize(
    "other",
    [
        lines_of(range(1, COUNT)),
        lines_of(range(COUNT), more=1),
        lines_of(range(5)),
        b"",
    ],
    ids=["other", "longer", "shorter", "empty"],
)
def test_another_file_is_rejected_before_anything_is_written(
    collection: CollectionClient, monkeypatch: pytest.MonkeyPatch, other: bytes
) -> None:
    crash(collection, monkeypatch, 5)
    before = imported(collection)
    problem(send(collection, other), 422, "idempotency_mismatch")
    assert imported(collection) == before
    assert send(collection, lines_of(range(COUNT))).json()["written"] == COUNT
    problem(send(collection, other), 422, "idempotency_mismatch")
    assert imported(collection) == list(range(COUNT))


def test_other_parameters_are_rejected(
    collection: CollectionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    crash(collection, monkeypatch, 5)
    body = lines_of(range(COUNT))
    problem(send(collection, body, query="?mode=skip"), 422, "idempotency_mismatch")
    assert send(collection, body).json()["written"] == COUNT
    problem(send(collection, body, query="?mode=skip"), 422, "idempotency_mismatch")
