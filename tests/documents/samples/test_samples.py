"""The sample data sets that a development installation begins with."""

from __future__ import annotations

import pytest

from documents.samples import load_samples
from tests.caller import Caller, with_key
from tests.make import TenantAccount, make_tenant

NAMES = ["tasks", "todos", "people", "cities", "products"]


@pytest.fixture
def account() -> TenantAccount:
    return make_tenant()


@pytest.fixture
def caller(server: str, account: TenantAccount) -> Caller:
    return with_key(server, account.admin_key)


def count(caller: Caller, name: str) -> int:
    answer = caller.post(f"/v1/collections/{name}/count", {})
    assert answer.status_code == 200, answer.text
    return int(answer.json()["count"])


def names(caller: Caller, collection: str, body: object) -> list[str]:
    answer = caller.post(f"/v1/collections/{collection}/query", body)
    assert answer.status_code == 200, answer.text
    return [item["document"]["name"] for item in answer.json()["items"]]


def test_samples_are_loaded_once(caller: Caller, account: TenantAccount) -> None:
    assert load_samples(account.tenant.id) == NAMES
    counts = {name: count(caller, name) for name in NAMES}
    assert counts["people"] == 4
    assert counts["tasks"] == 3
    assert all(counts[name] >= 80 for name in ("todos", "cities", "products"))
    assert load_samples(account.tenant.id) == []
    assert {name: count(caller, name) for name in NAMES} == counts


def test_deleted_samples_are_not_loaded_again(caller: Caller, account: TenantAccount) -> None:
    load_samples(account.tenant.id)
    answer = caller.post("/v1/collections/todos/documents:delete", {"filter": {}})
    assert answer.status_code == 200, answer.text
    assert load_samples(account.tenant.id) == []
    assert count(caller, "todos") == 0


def test_samples_answer_the_queries_of_the_guide(caller: Caller, account: TenantAccount) -> None:
    load_samples(account.tenant.id)
    largest = {"filter": {"country": "JP"}, "sort": [["population", -1]], "limit": 2}
    assert names(caller, "cities", largest) == ["Tokyo", "Yokohama"]
    near = {"type": "Point", "coordinates": [11.0, 49.0]}
    nearby = {"filter": {"place": {"$nearSphere": {"$geometry": near}}}, "limit": 1}
    assert names(caller, "cities", nearby) == ["Munich"]
    refers = {"from": "people", "local": "owner", "as": "by"}
    request = {"lookup": [refers], "projection": {"by.name": 1, "_id": 0}, "limit": 1}
    (todo,) = caller.post("/v1/collections/todos/query", request).json()["items"]
    assert todo["document"]["by"]["name"] == "Ada Okafor"
    cheap = {"filter": {"tags": "wood", "price": {"$lt": 10}}, "sort": [["price", 1]]}
    assert names(caller, "products", cheap) == [
        "Birch Pen",
        "Oak Pen",
        "Heritage Pen",
        "Birch Notebook",
    ]
