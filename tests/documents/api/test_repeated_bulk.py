"""Independent operations with an idempotency key take effect once, also if their documents do not
fit into memory together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import requests

from documents.api import bulk
from documents.store import large_results
from documents.store.write import WriteCall, WriteResult
from documents.store.writer import write
from tests.caller import problem
from tests.documents.collection import CollectionClient, make_collection

COUNT = 16
OPERATIONS: list[Any] = [
    *({"update": {"id": n, "update": {"$inc": {"n": 1}}}} for n in range(COUNT)),
    {"insert": {"n": 1}},
    {"delete": {"id": "absent"}},
]


@pytest.fixture
def collection(server: str) -> CollectionClient:
    created = make_collection(server)
    text = "x" * 1_000
    created.insert_many([{"_id": n, "n": 0, "text": text} for n in range(COUNT)])
    return created


@pytest.fixture
def little_memory(collection: CollectionClient) -> Iterator[None]:
    """Memory for four documents at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large_results, "SMALL_BYTES", 1_000)
        patch.setattr(large_results, "LARGE_BYTES", 5_000)
        yield


def send(collection: CollectionClient, *more: object) -> requests.Response:
    body = {"operations": [*OPERATIONS, *more], "ordered": False}
    return collection.caller.post(f"{collection.path}/documents:bulk", body, Idempotency_Key="k")


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("at", range(1, 13))
def test_a_retry_continues_with_the_next_part(
    collection: CollectionClient, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    left = at

    async def crashing(call: WriteCall) -> WriteResult:
        nonlocal left
        left -= 1
        try:
            return await write(call)
        finally:
            if not left:
                raise RuntimeError("the process ends here")

    with monkeypatch.context() as crash:
        crash.setattr(bulk, "write", crashing)
        assert send(collection).status_code == (200 if left > 0 else 500)
    first, again = send(collection), send(collection)
    assert again.content == first.content
    assert again.headers["Idempotency-Replayed"] == "true"
    results = first.json()["results"]
    assert [result.get("id") for result in results[:COUNT]] == list(range(COUNT))
    assert results[-1]["error"]["code"] == "not_found"
    problem(send(collection, {"insert": {}}), 422, "idempotency_mismatch")
    assert [result["version"] for result in results[:COUNT]] == [2] * COUNT
    counted = collection.caller.post(f"{collection.path}/count", {"filter": {"n": 1}})
    assert counted.json()["count"] == COUNT + 1
