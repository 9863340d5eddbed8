"""Spatial indexes narrow queries by geometry, and never change their results."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from documents.collections import backfill
from tests.caller import Caller, problem, with_key
from tests.documents.collection import default_backend
from tests.documents.collections import stored_documents
from tests.documents.places import place, position
from tests.make import TenantAccount, make_tenant

DOCUMENTS = 600


@pytest.fixture
def account() -> TenantAccount:
    return make_tenant(plan="dedicated")


@pytest.fixture
def caller(server: str, account: TenantAccount) -> Caller:
    return with_key(server, account.admin_key)


def path_of(account: TenantAccount, name: str = "") -> str:
    return f"/api/v1/tenants/{account.slug}/collections" + (f"/{name}" if name else "")


def by_place(order: str) -> dict[str, Any]:
    return {"name": f"by-place-{order}", "fields": [["place", order]]}


def create(caller: Caller, account: TenantAccount, *indexes: object) -> None:
    body = {"name": "stops", "backend": default_backend.get(), "indexes": indexes}
    answer = caller.post(path_of(account), body)
    assert answer.status_code == 201, answer.text


def fill(account: TenantAccount, generator: random.Random) -> None:
    documents = ({"_id": n, "place": place(generator)} for n in range(DOCUMENTS))
    stored_documents.put(account.tenant.id, "stops", documents)


def conditions(generator: random.Random) -> list[dict[str, Any]]:
    at = position(generator)
    point = {"type": "Point", "coordinates": at}
    west, south = min(at[0], 170.0), max(-80.0, min(at[1], 80.0))
    ring = [[west, south], [west + 5, south], [west + 5, south + 5], [west, south]]
    return [
        {"$geoWithin": {"$centerSphere": [at, generator.choice([0.00001, 0.01, 0.2])]}},
        {"$geoWithin": {"$geometry": {"type": "Polygon", "coordinates": [ring]}}},
        {"$geoIntersects": {"$geometry": point}},
        {"$near": {"$geometry": point, "$maxDistance": generator.choice([10, 10_000, 900_000])}},
        {"$geoWithin": {"$box": [[west, south], [west + 3, south + 3]]}},
        {"$geoWithin": {"$center": [[west, south], 0.5]}},
    ]


def ids(caller: Caller, condition: dict[str, Any]) -> list[Any]:
    body = {"filter": {"place": condition}, "limit": 1_000}
    answer = caller.post("/v1/collections/stops/query", body)
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


def plan(caller: Caller, condition: dict[str, Any]) -> dict[str, Any]:
    body = {"filter": {"place": condition}, "limit": 1_000}
    answer: dict[str, Any] = caller.post("/v1/collections/stops/explain", body).json()
    shown: dict[str, Any] = answer["plan"]
    return shown


def test_results_are_those_without_an_index(caller: Caller, account: TenantAccount) -> None:
    generator = random.Random(7)
    create(caller, account)
    fill(account, generator)
    conditions_used = [condition for _ in range(12) for condition in conditions(generator)]
    expected = {json.dumps(condition): ids(caller, condition) for condition in conditions_used}
    assert sum(map(len, expected.values())) > DOCUMENTS, "most conditions match something"
    for order in ("2dsphere", "2d"):
        path = path_of(account, "stops")
        assert caller.patch(path, {"indexes": [by_place(order)]}).status_code == 200
        identity = caller.get(path).json()["id"]
        index = stored_documents.index(identity, f"by-place-{order}")
        backfill.backfill(tenant=str(account.tenant.id), index=index.number)
        used = 0
        for condition in conditions_used:
            assert ids(caller, condition) == expected[json.dumps(condition)], (order, condition)
            used += plan(caller, condition)["reads"] == "index"
        # Conditions on the sphere and on the plane need indexes of their own.
        assert used == {"2dsphere": 48, "2d": 24}[order]
        caller.patch(path, {"indexes": []})


def test_entries_follow_a_document_that_moves(caller: Caller, account: TenantAccount) -> None:
    create(caller, account, by_place("2dsphere"))
    berlin, paris = [13.4, 52.5], [2.35, 48.85]
    around = [{"$geoWithin": {"$centerSphere": [at, 0.01]}} for at in (berlin, paris)]
    stored_documents.put(account.tenant.id, "stops", [{"_id": "tram", "place": berlin}])
    assert plan(caller, around[0])["index"] == "by-place-2dsphere"
    assert [ids(caller, condition) for condition in around] == [["tram"], []]
    moved = caller.patch("/v1/collections/stops/documents/tram", {"$set": {"place": paris}})
    assert moved.status_code == 200
    assert [ids(caller, condition) for condition in around] == [[], ["tram"]]
    caller.patch("/v1/collections/stops/documents/tram", {"$set": {"place": [berlin, "x", paris]}})
    assert [ids(caller, condition) for condition in around] == [["tram"], ["tram"]]
    caller.delete("/v1/collections/stops/documents/tram")
    assert [ids(caller, condition) for condition in around] == [[], []]


def test_an_index_reads_few_of_many_documents(caller: Caller, account: TenantAccount) -> None:
    create(caller, account, by_place("2dsphere"))
    grid = ([lon, lat] for lon in range(-180, 180, 10) for lat in range(-80, 90, 10))
    documents = ({"_id": n, "place": at} for n, at in enumerate(grid))
    stored_documents.put(account.tenant.id, "stops", documents)
    near = {"$near": {"$geometry": {"type": "Point", "coordinates": [10, 50]}}}
    near["$near"]["$maxDistance"] = 2_000_000  # type: ignore[assignment]
    shown = plan(caller, near)
    assert shown["estimated_entries"] < 80
    assert len(ids(caller, near)) >= 10
    assert plan(caller, {"$near": [10, 50]})["reads_everything"], "on the plane"


def test_other_conditions_and_sorts_do_not_use_it(caller: Caller, account: TenantAccount) -> None:
    create(caller, account, by_place("2dsphere"))
    stored_documents.put(account.tenant.id, "stops", [{"_id": 1, "place": None}, {"_id": 2}])
    for condition in ({"$eq": None}, {"$exists": False}):
        assert plan(caller, condition)["reads_everything"]
    assert ids(caller, {"$eq": None}) == [1, 2]
    body = {"sort": [["place", 1]]}
    explained = caller.post("/v1/collections/stops/explain", body).json()
    assert explained["plan"]["index"] is None
    assert len(caller.post("/v1/collections/stops/query", body).json()["items"]) == 2


def test_a_spatial_index_that_is_not_possible_is_rejected(
    caller: Caller, account: TenantAccount
) -> None:
    def pointers(**index: object) -> list[str]:
        body = {"name": "others", "indexes": [{**by_place("2dsphere"), **index}]}
        body["backend"] = default_backend.get()
        errors = problem(caller.post(path_of(account), body), 400, "invalid_body")["errors"]
        return [error["pointer"] for error in errors]

    assert pointers(unique=True) == ["/indexes/0/unique"]
    assert pointers(fields=[["place", "2dsphere"], ["n", 1]]) == ["/indexes/0/fields"]
    assert pointers(fields=[["place", "3d"]]) == ["/indexes/0/fields/0"]
    assert pointers(fields=[["place", True]]) == ["/indexes/0/fields/0"]
    assert "/indexes/0/technique" in pointers(technique="lazy")
