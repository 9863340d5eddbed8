"""Writes to the storage node that PostgreSQL records afterwards: a process that ends in between
changes nothing twice.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from documents.api import by_filter
from documents.backend import Backend
from documents.models import ImportJob
from documents.store.group import conclude
from documents.store.node import writes
from documents.store.write import WriteCall
from documents.transfer import importing
from rillbase_native import Outcomes
from tests.caller import problem
from tests.documents.collection import CollectionClient, make_collection

COUNT = 23


@pytest.fixture
def counters(server: str) -> CollectionClient:
    collection = make_collection(server, backend=Backend.NATIVE)
    collection.insert_many([{"_id": n, "n": 0} for n in range(COUNT)])
    return collection


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_filter, "BATCH", 5)
    monkeypatch.setattr(importing, "BATCH_RECORDS", 5)


class Crash:
    """Ends the n-th write after the node has executed it, before it is recorded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
        self._remaining = at
        monkeypatch.setattr(writes, "conclude", self._crash)

    async def _crash(self, write: WriteCall, outcomes: Outcomes, step: bytes) -> Any:
        self._remaining -= 1
        if not self._remaining:
            raise RuntimeError("the process ends here")
        return await conclude(write, outcomes, step)


def values(counters: CollectionClient) -> Counter[int]:
    return Counter(document["n"] for document in counters.query(limit=1_000))


def crashed_then_repeated(
    send: Callable[[], requests.Response], monkeypatch: pytest.MonkeyPatch, at: int
) -> requests.Response:
    with monkeypatch.context() as crashing:
        Crash(crashing, at)
        assert send().status_code == 500
    return send()


@pytest.mark.parametrize("at", [1, 3, 5])
def test_an_update_by_filter_changes_each_document_once(
    counters: CollectionClient, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    def send() -> requests.Response:
        # Updated documents no longer match: a repeated batch must not skip others for them.
        body = {"filter": {"n": {"$lt": 1}}, "update": {"$inc": {"n": 1}}}
        return counters.caller.post(f"{counters.path}/documents:update", body, Idempotency_Key="k")

    answer = crashed_then_repeated(send, monkeypatch, at)
    assert answer.json() == {"matched": COUNT, "changed": COUNT, "complete": True}
    assert values(counters) == {1: COUNT}
    assert send().headers["Idempotency-Replayed"] == "true"


def test_a_bulk_write_has_the_results_of_its_first_execution(
    counters: CollectionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send() -> requests.Response:
        operations = [{"update": {"id": n, "update": {"$inc": {"n": 1}}}} for n in (1, 2, 99)]
        body = {"operations": operations, "ordered": False}
        return counters.caller.post(f"{counters.path}/documents:bulk", body, Idempotency_Key="k")

    results = crashed_then_repeated(send, monkeypatch, 1).json()["results"]
    assert [result.get("version") for result in results] == [2, 2, None]
    assert values(counters) == {0: COUNT - 2, 1: 2}


@pytest.mark.parametrize("key", [None, "k"])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_an_interrupted_import_continues_without_writing_a_batch_twice(
    counters: CollectionClient, monkeypatch: pytest.MonkeyPatch, at: int, key: str | None
) -> None:
    text = "\n".join(json.dumps({"n": 7}) for _ in range(12)).encode()
    headers = {"Content_Type": "application/x-ndjson"} | ({"Idempotency_Key": key} if key else {})

    def send(query: str = "") -> requests.Response:
        path = f"{counters.path}/import{query}"
        return counters.caller.call("POST", path, raw=text, **headers)

    with monkeypatch.context() as crashing:
        Crash(crashing, at)
        assert send().status_code == 500
    resumed = "" if key is not None else f"?resume={_job_of(counters)}"
    assert send(resumed).status_code == 200
    assert values(counters) == {0: COUNT, 7: 12}


def _job_of(counters: CollectionClient) -> str:
    jobs = ImportJob.unscoped.using("relay").filter(collection_id=counters.collection.pk)
    return str(jobs.get().pk)


def test_a_single_write_is_repeated_with_its_result(counters: CollectionClient) -> None:
    path = f"{counters.path}/documents"
    first = counters.caller.post(path, {"n": 5}, Idempotency_Key="k")
    again = counters.caller.post(path, {"n": 5}, Idempotency_Key="k")
    assert (again.status_code, again.json()) == (201, first.json())
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.headers["Location"] == first.headers["Location"]
    other = counters.caller.post(path, {"n": 6}, Idempotency_Key="k")
    problem(other, 422, "idempotency_mismatch")
    assert values(counters)[5] == 1


def test_concurrent_writes_of_large_documents_are_all_executed(server: str) -> None:
    large = make_collection(server, backend=Backend.NATIVE)
    for number in range(8):
        large.insert({"_id": number, "text": "x" * 12_000_000})

    def update(number: int) -> int:
        path = f'{large.path}/documents/~{{"$numberInt":"{number}"}}'
        return large.caller.patch(path, {"$set": {"text": "short"}}).status_code

    with ThreadPoolExecutor(8) as callers:
        assert set(callers.map(update, range(8))) == {200}
    assert large.versions() == dict.fromkeys(range(8), 2)
