"""`$near` reads the nearest documents from a spatial index, with the results of a full scan."""

from __future__ import annotations

import random
from typing import Any

import pytest

from documents.collections import backfill
from tenants.models import ApiKey
from tests.caller import Caller, problem, with_key
from tests.documents.collection import default_backend
from tests.documents.collections import stored_documents
from tests.documents.places import place, position
from tests.make import TenantAccount, make_key, make_tenant

DOCUMENTS = 2_600
#: Many documents have the same distance.
SAME = {"type": "Point", "coordinates": [20.0, 30.0]}
Query = dict[str, Any]


@pytest.fixture
def account() -> TenantAccount:
    return make_tenant(plan="dedicated")


@pytest.fixture
def caller(server: str, account: TenantAccount) -> Caller:
    return with_key(server, account.admin_key)


def create(caller: Caller, account: TenantAccount, **settings: object) -> None:
    body = {"name": "stops", "backend": default_backend.get(), **settings}
    answer = caller.post(f"/api/v1/tenants/{account.slug}/collections", body)
    assert answer.status_code == 201, answer.text


def declare(caller: Caller, account: TenantAccount, *indexes: tuple[str, str | int]) -> None:
    path = f"/api/v1/tenants/{account.slug}/collections/stops"
    names = [f"by-{field}-{order}" for field, order in indexes]
    declared = [
        {"name": name, "fields": [field]} for name, field in zip(names, indexes, strict=True)
    ]
    assert caller.patch(path, {"indexes": declared}).status_code == 200
    identity = caller.get(path).json()["id"]
    for name in names:
        index = stored_documents.index(identity, name)
        backfill.backfill(tenant=str(account.tenant.id), index=index.number)


def put(account: TenantAccount, places: list[object]) -> None:
    documents = [
        {"_id": n, "place": at, "kind": n % 50, "rare": n % 900} for n, at in enumerate(places)
    ]
    stored_documents.put(account.tenant.id, "stops", documents)


def grid(step: float = 5) -> list[object]:
    """Return a grid of pairs."""
    columns, rows = int(360 / step), int(160 / step)
    return [[x * step - 180, y * step - 80] for x in range(columns) for y in range(rows)]


def pages(caller: Caller, query: Query, most: int = 1) -> list[list[Any]]:
    """Return the ids of up to so many pages."""
    ids: list[list[Any]] = []
    cursor = None
    while len(ids) < most and (cursor or not ids):
        body = {**query, "cursor": cursor} if cursor else query
        answer = caller.post("/v1/collections/stops/query", body)
        assert answer.status_code == 200, answer.text
        ids.append([item["id"] for item in answer.json()["items"]])
        cursor = answer.json()["next_cursor"]
    return ids


def plan(caller: Caller, query: Query) -> dict[str, Any]:
    explained: dict[str, Any] = caller.post("/v1/collections/stops/explain", query).json()
    shown: dict[str, Any] = explained["plan"]
    return shown


def near(at: list[float], **distances: float) -> Query:
    named = {f"${name}": distance for name, distance in distances.items()}
    return {"$near": {"$geometry": {"type": "Point", "coordinates": at}, **named}}


def queries(generator: random.Random) -> list[Query]:
    at = position(generator)
    pair = [at[0], max(-89.0, at[1])]
    conditions: list[Query] = [
        {"place": near(at)},
        {"place": near(at, minDistance=generator.choice([1.0, 50_000.0, 4_000_000.0]))},
        {"place": near(at, maxDistance=9_000_000.0)},
        {"place": {"$nearSphere": pair}},
        {"place": {"$near": pair}},
        {"place": {"$near": pair, "$minDistance": 2.0}},
        {"place": near(at), "kind": 7},
        {"place": near(at), "rare": 7},
        {"place": near([20.0, 30.0])},
        {"$and": [{"place": {"$near": [20.0, 30.0]}}, {"kind": {"$lt": 30}}]},
    ]
    return [{"filter": one, "limit": generator.choice([1, 10, 100])} for one in conditions]


def test_results_are_those_without_an_index(caller: Caller, account: TenantAccount) -> None:
    generator = random.Random(11)
    create(caller, account)
    put(account, [SAME if n % 20 == 0 else place(generator) for n in range(DOCUMENTS)])
    checked = [query for _ in range(4) for query in queries(generator)]
    checked += [{**query, "offset": generator.choice([1, 30, 200])} for query in queries(generator)]
    checked += [{**query, "limit": 1_000} for query in queries(generator)]
    expected = [pages(caller, query, 4) for query in checked]
    declare(caller, account, ("place", "2dsphere"), ("place", "2d"))
    used = 0
    for query, result in zip(checked, expected, strict=True):
        assert pages(caller, query, 4) == result, query
        used += plan(caller, query)["reads"] == "index"
    assert used >= 20, "the others request much of the collection"


@pytest.mark.parametrize("order", ["2dsphere", "2d"])
def test_pages_continue_to_the_end(caller: Caller, account: TenantAccount, order: str) -> None:
    generator = random.Random(5)
    create(caller, account)
    put(account, [SAME if n % 9 == 0 else place(generator) for n in range(1_500)])
    condition = near([21.0, 30.0]) if order == "2dsphere" else {"$near": [21.0, 30.0]}
    query = {"filter": {"place": condition}, "limit": 40}
    expected = pages(caller, query, 100)
    declare(caller, account, ("place", order))
    assert plan(caller, query)["index"] == f"by-place-{order}"
    assert pages(caller, query, 100) == expected
    assert len(expected) > 20
    assert len({number for page in expected for number in page}) == sum(map(len, expected))


@pytest.mark.parametrize("order", ["2dsphere", "2d"])
def test_few_of_many_documents_are_read(caller: Caller, account: TenantAccount, order: str) -> None:
    create(caller, account)
    put(account, grid(2.5))
    declare(caller, account, ("place", order))
    at = [11.0, 51.0]
    condition = near(at) if order == "2dsphere" else {"$near": at}
    for limit, most in ((1, 60), (10, 150), (100, 900)):
        shown = plan(caller, {"filter": {"place": condition}, "limit": limit})
        assert shown["index"] == f"by-place-{order}", limit
        assert limit < shown["estimated_entries"] < most, shown
    last = {"filter": {"place": condition}, "limit": 10, "offset": 90}
    assert plan(caller, last)["estimated_entries"] < 900


def test_the_nearest_of_distant_documents_are_read_from_the_index(
    caller: Caller, account: TenantAccount
) -> None:
    create(caller, account)
    generator = random.Random(3)
    put(account, [[generator.gauss(13, 1), generator.gauss(52, 1)] for _ in range(2_500)])
    query = {"filter": {"place": near([-170.0, -40.0])}, "limit": 5}
    expected = pages(caller, query)
    declare(caller, account, ("place", "2dsphere"))
    assert pages(caller, query) == expected


def test_an_index_with_few_geometries_answers_what_they_do_not_fill(
    caller: Caller, account: TenantAccount
) -> None:
    create(caller, account)
    put(account, [[n, n] if n < 60 else None for n in range(2_000)])
    declare(caller, account, ("place", "2dsphere"))
    query = {"filter": {"place": near([-170.0, -40.0])}, "limit": 100}
    shown = plan(caller, query)
    assert (shown["index"], shown["estimated_entries"]) == ("by-place-2dsphere", 60)
    (ids,) = pages(caller, query, 2)
    assert sorted(ids) == list(range(60))


def test_a_selective_filter_has_the_same_result(caller: Caller, account: TenantAccount) -> None:
    create(caller, account)
    put(account, grid(4))
    query = {"filter": {"place": near([0.5, 0.5]), "rare": {"$in": [1, 5]}}, "limit": 3}
    none = {"filter": {"place": near([0.5, 0.5]), "rare": "none"}}
    expected = pages(caller, query)
    declare(caller, account, ("place", "2dsphere"))
    assert pages(caller, query) == expected
    assert pages(caller, none) == [[]]


def test_an_index_of_the_other_condition_is_used_if_it_is_narrower(
    caller: Caller, account: TenantAccount
) -> None:
    create(caller, account)
    put(account, grid())
    declare(caller, account, ("place", "2dsphere"), ("rare", 1))
    query = {"filter": {"place": near([0.5, 0.5]), "rare": 1}}
    assert plan(caller, query)["index"] == "by-rare-1"
    assert len(pages(caller, query)[0]) == len([n for n in range(len(grid())) if n % 900 == 1])


def test_only_readable_documents_are_in_the_result(
    server: str, caller: Caller, account: TenantAccount
) -> None:
    rules = {"read": {"kind": {"$lt": 3}}}
    create(caller, account, access_rules=rules)
    put(account, grid())
    declare(caller, account, ("place", "2dsphere"))
    key = make_key(account.tenant, scopes=["documents:read"], kind=ApiKey.Kind.PUBLISHABLE)
    limited = Caller(server, {"Rillbase-Key": key})
    (ids,) = pages(limited, {"filter": {"place": near([3.0, 3.0])}, "limit": 20})
    assert len(ids) == 20
    assert all(number % 50 < 3 for number in ids)


def test_a_wrong_distance_is_rejected_as_before(caller: Caller, account: TenantAccount) -> None:
    create(caller, account, indexes=[{"name": "by-place", "fields": [["place", "2dsphere"]]}])
    for condition in (near([0, 0], maxDistance=-1), near([400, 0]), {"$near": "here"}):
        body = {"filter": {"place": condition}}
        problem(caller.post("/v1/collections/stops/query", body), 400, "invalid_geometry")
