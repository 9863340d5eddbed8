"""A call that changes many documents in several transactions takes effect once, however often it
is repeated with its idempotency key, at the same time or after a crash.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from documents.api import by_filter
from documents.store.write import WriteCall, WriteResult
from documents.store.writer import write
from foundation.models import CallProgress
from tests.caller import problem
from tests.documents.collection import CollectionClient, make_collection
from tests.waiting import wait_until

COUNT = 40
BODY = {"filter": {"n": {"$gte": 0}}, "update": {"$inc": {"n": 1}}}
ALL = {"matched": COUNT, "changed": COUNT, "complete": True}


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_filter, "BATCH", 5)


@pytest.fixture
def counters(server: str) -> CollectionClient:
    collection = make_collection(server, indexes=[("unique", [("u", 1)], True)])
    collection.insert_many([{"_id": f"c{n:03}", "n": 0, "u": n} for n in range(COUNT)])
    return collection


class Crash:
    """Fails the n-th write of the server, before or after it is committed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, at: int, *, is_committed: bool) -> None:
        self._left = at
        self._is_committed = is_committed
        monkeypatch.setattr(by_filter, "write", self._write)

    async def _write(self, call: WriteCall) -> WriteResult:
        self._left -= 1
        if self._left:
            return await write(call)
        if self._is_committed:
            await write(call)
        raise RuntimeError("the process ends here")


def update(counters: CollectionClient, body: object = BODY, **more: Any) -> requests.Response:
    return counters.caller.post(f"{counters.path}/documents:update", body, **more)


def values(counters: CollectionClient) -> Counter[int]:
    return Counter(document["n"] for document in counters.query(limit=1_000))


@pytest.mark.parametrize("phase", ["before", "after"])
@pytest.mark.parametrize("at", [1, 4, 8])
def test_a_retry_continues_where_a_crash_interrupted_the_call(
    counters: CollectionClient, monkeypatch: pytest.MonkeyPatch, at: int, phase: str
) -> None:
    with monkeypatch.context() as crashing:
        Crash(crashing, at, is_committed=phase == "after")
        assert update(counters, Idempotency_Key="k").status_code == 500
    again = update(counters, Idempotency_Key="k")
    assert (again.status_code, again.json()) == (200, ALL)
    assert values(counters) == {1: COUNT}
    assert update(counters, Idempotency_Key="k").headers["Idempotency-Replayed"] == "true"
    assert values(counters) == {1: COUNT}
    assert not CallProgress.objects.using("relay").filter(tenant_id=counters.account.tenant.id)


def test_an_interrupted_deletion_continues(
    counters: CollectionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, body = f"{counters.path}/documents:delete", {"filter": {}, "limit": 30}
    with monkeypatch.context() as crashing:
        Crash(crashing, 3, is_committed=True)
        assert counters.caller.post(path, body, Idempotency_Key="k").status_code == 500
    again = counters.caller.post(path, body, Idempotency_Key="k")
    assert again.json() == {"matched": 30, "changed": 30, "complete": True}
    assert len(counters.ids()) == COUNT - 30


def test_concurrent_calls_with_one_key_change_each_document_once(
    counters: CollectionClient,
) -> None:
    with ThreadPoolExecutor(12) as callers:
        answers = list(callers.map(lambda _: update(counters, Idempotency_Key="k"), range(24)))
    assert {answer.status_code for answer in answers} <= {200, 409}
    for answer in answers:
        if answer.status_code == 409:
            problem(answer, 409, "idempotency_in_progress")
            assert answer.headers["Retry-After"] == "1"
        else:
            assert answer.json() == ALL
    assert update(counters, Idempotency_Key="k").json() == ALL
    assert values(counters) == {1: COUNT}


def test_a_client_that_did_not_wait_long_enough_retries(
    counters: CollectionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(call: WriteCall) -> WriteResult:
        await asyncio.sleep(0.1)
        return await write(call)

    monkeypatch.setattr(by_filter, "write", slow)
    url = f"{counters.caller.base}{counters.path}/documents:update"
    headers = {**counters.caller.headers, "Idempotency-Key": "k"}
    with pytest.raises(requests.ReadTimeout):
        requests.post(url, json=BODY, headers=headers, timeout=(5, 0.25))
    wait_until(
        lambda: update(counters, Idempotency_Key="k").status_code == 200, what="the response"
    )
    assert values(counters) == {1: COUNT}


def test_another_body_is_rejected_before_and_after_the_end(
    counters: CollectionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {**BODY, "update": {"$inc": {"n": 5}}}
    with monkeypatch.context() as crashing:
        Crash(crashing, 3, is_committed=True)
        assert update(counters, Idempotency_Key="k").status_code == 500
    problem(update(counters, other, Idempotency_Key="k"), 422, "idempotency_mismatch")
    assert update(counters, Idempotency_Key="k").json() == ALL
    problem(update(counters, other, Idempotency_Key="k"), 422, "idempotency_mismatch")


@pytest.mark.parametrize("at", range(1, 12))
def test_a_retry_returns_the_error_of_an_incomplete_call(
    counters: CollectionClient, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Each document has a unique value already, except in the third batch."""
    change = {"$inc": {"n": 1, "u": 1_000}}
    counters.insert({"_id": "other", "u": 1_012})
    body = {"filter": BODY["filter"], "update": change}
    with monkeypatch.context() as crashing:
        Crash(crashing, at, is_committed=True)
        update(counters, body, Idempotency_Key="k")
    problem(update(counters, body, Idempotency_Key="k"), 409, "duplicate_key")
    again = update(counters, body, Idempotency_Key="k")
    problem(again, 409, "duplicate_key")
    assert again.headers["Idempotency-Replayed"] == "true"
    changed = {document["_id"] for document in counters.query({"n": 1}, limit=1_000)}
    assert {f"c{n:03}" for n in range(12)} <= changed
    assert "c012" not in changed
    assert counters.query({"n": {"$gt": 1}}) == []


def test_an_error_before_any_change_leaves_the_key_free(counters: CollectionClient) -> None:
    body = {"filter": {"_id": "c001"}, "update": {"$inc": {"n": 1}, "$set": {"u": 2}}}
    problem(update(counters, body, Idempotency_Key="k"), 409, "duplicate_key")
    counters.caller.delete(f"{counters.path}/documents/c002")
    assert update(counters, body, Idempotency_Key="k").json()["changed"] == 1
