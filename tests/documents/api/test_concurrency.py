"""Many callers at once: nothing is lost, nothing happens twice."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.documents.collection import CollectionClient, make_collection

CALLERS = 32


@pytest.fixture
def collection(server: str) -> CollectionClient:
    return make_collection(server, indexes=[("n", [("n", 1)], False)])


def together(call: Callable[[int], requests.Response], times: int) -> list[requests.Response]:
    with ThreadPoolExecutor(CALLERS) as callers:
        return list(callers.map(call, range(times)))


def test_increments_of_one_document_add_up(collection: CollectionClient) -> None:
    collection.insert({"_id": "a", "n": 0})
    answers = together(
        lambda _: collection.caller.patch(f"{collection.path}/documents/a", {"$inc": {"n": 1}}), 320
    )
    assert {answer.status_code for answer in answers} == {200}
    assert collection.query() == [{"_id": "a", "n": 320}]
    versions = sorted(answer.json()["version"] for answer in answers)
    assert versions == list(range(2, 322)), "each change has a version of its own, without holes"
    values = {answer.json()["version"]: answer.json()["document"]["n"] for answer in answers}
    assert values == {version: version - 1 for version in versions}


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_one_of_many_inserts_of_an_id_succeeds(collection: CollectionClient, name: str) -> None:
    answers = together(
        lambda n: collection.caller.post(f"{collection.path}/documents", {"_id": name, "n": n}),
        CALLERS,
    )
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses == [201] + [409] * (CALLERS - 1)
    (winner,) = (answer.json() for answer in answers if answer.status_code == 201)
    assert collection.query({"_id": name}) == [winner["document"]]


def test_of_concurrent_updates_of_one_version_one_succeeds(collection: CollectionClient) -> None:
    collection.insert({"_id": "a"})
    answers = together(
        lambda n: collection.caller.put(
            f"{collection.path}/documents/a", {"n": n}, If_Match='"v1"'
        ),
        CALLERS,
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [412] * (CALLERS - 1)


def test_concurrent_calls_with_one_idempotency_key_write_once(collection: CollectionClient) -> None:
    answers = together(
        lambda _: collection.caller.post(
            f"{collection.path}/documents", {"n": 1}, Idempotency_Key="one"
        ),
        CALLERS,
    )
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert len({answer.text for answer in answers if answer.status_code == 201}) == 1
    assert len(collection.ids()) == 1


def test_concurrent_batches_over_the_same_documents_all_succeed(
    collection: CollectionClient,
) -> None:
    names = [f"d{n}" for n in range(20)]

    def batch(number: int) -> requests.Response:
        mixed = names[number % 20 :] + names[: number % 20]
        operations = [
            {"update": {"id": name, "update": {"$inc": {"n": 1}}, "upsert": True}} for name in mixed
        ]
        return collection.caller.post(
            f"{collection.path}/documents:bulk", {"operations": operations}
        )

    answers = together(batch, 64)
    assert {answer.status_code for answer in answers} == {200}
    assert [document["n"] for document in collection.query()] == [64] * 20
    by_index = collection.ids({"n": {"$gte": 0}}, sort=[["n", 1]])
    assert sorted(by_index) == sorted(names), "no entry of an earlier value is left"
    assert collection.ids({"n": {"$lt": 64}}) == []
