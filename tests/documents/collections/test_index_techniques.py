"""Indexes of native collections by technique: how they are declared, and what they yield."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from documents.collections import backfill
from documents.models import Index
from documents.store.node import snapshot
from tests.caller import Caller, problem
from tests.documents.collections import stored_documents
from tests.make import TenantAccount

NEWEST_FIRST = [["$updated", -1]]
BY_TIME = ["lazy", "eager", "embedded"]
#: A query is read by time if there are more than four times as many entries as documents needed.
DOCUMENTS = 60


def path_of(account: TenantAccount, name: str = "") -> str:
    return f"/api/v1/tenants/{account.slug}/collections" + (f"/{name}" if name else "")


def by_shop(technique: str, **more: object) -> dict[str, Any]:
    return {"name": "by-shop", "fields": [["shop", 1]], "technique": technique, **more}


def create(
    caller: Caller, account: TenantAccount, *indexes: object, backend: str = "native"
) -> dict[str, Any]:
    body = {"name": "things", "backend": backend, "indexes": indexes}
    answer = caller.post(path_of(account), body)
    assert answer.status_code == 201, answer.text
    created: dict[str, Any] = answer.json()
    return created


def techniques(collection: dict[str, Any]) -> list[str]:
    return [index["technique"] for index in collection["indexes"]]


def put(account: TenantAccount, *documents: object) -> None:
    stored_documents.put(account.tenant.id, "things", documents)


def fill(account: TenantAccount) -> None:
    """Put documents of three shops, a few at a time, so that their times differ."""
    for start in range(0, DOCUMENTS, 10):
        put(account, *({"_id": n, "shop": n % 3} for n in range(start, start + 10)))


def page(caller: Caller, **query: object) -> dict[str, Any]:
    answer = caller.post("/v1/collections/things/query", {"sort": NEWEST_FIRST, **query})
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


def ids(shown: dict[str, Any]) -> list[Any]:
    return [item["id"] for item in shown["items"]]


def plan(caller: Caller, **query: object) -> dict[str, Any]:
    answer = caller.post("/v1/collections/things/explain", {"sort": NEWEST_FIRST, **query})
    shown: dict[str, Any] = answer.json()["plan"]
    return shown


def newest(caller: Caller, shops: set[int]) -> list[Any]:
    """Return the ids of some shops' documents, from the times that a query returns."""
    items = page(caller, limit=1_000, sort=[["_id", 1]])["items"]
    matching = [item for item in items if item["document"]["shop"] in shops]
    matching.sort(key=lambda item: item["updated_at"], reverse=True)
    return [item["id"] for item in matching]


@pytest.mark.parametrize("technique", BY_TIME)
def test_the_newest_documents_of_a_value_are_read_in_order(
    caller: Caller, account: TenantAccount, technique: str
) -> None:
    created = create(caller, account, by_shop(technique))
    assert techniques(created) == [technique]
    fill(account)
    for number in (2, 4):
        path = f'/v1/collections/things/documents/~{{"$numberInt":"{number}"}}'
        assert caller.patch(path, {"$set": {"shop": 1}}).status_code == 200
    caller.delete('/v1/collections/things/documents/~{"$numberInt":"7"}')
    assert plan(caller, filter={"shop": 1}, limit=3) == {
        "reads": "index",
        "index": "by-shop",
        "technique": technique,
        "ranges": 1,
        "order": "by time, the newest first",
        "backward": False,
        "estimated_entries": None,
        "reads_everything": False,
        "first_batch": 128,
    }
    expected = newest(caller, {1})
    assert expected[0] == 4
    assert expected[1] == 2
    assert 7 not in expected
    assert ids(page(caller, filter={"shop": 1}, limit=3)) == expected[:3]


@pytest.mark.parametrize("technique", BY_TIME)
def test_the_newest_documents_of_a_range_are_read_page_by_page(
    caller: Caller, account: TenantAccount, technique: str
) -> None:
    create(caller, account, by_shop(technique))
    fill(account)
    shown: list[Any] = []
    cursor = None
    while cursor is not None or not shown:
        query = {"filter": {"shop": {"$gte": 1}}, "limit": 7, "cursor": cursor}
        answer = page(caller, **{name: part for name, part in query.items() if part is not None})
        shown.extend(ids(answer))
        cursor = answer["next_cursor"]
    assert shown == newest(caller, {1, 2})


@pytest.mark.parametrize("technique", BY_TIME)
def test_other_queries_use_the_index_as_well(
    caller: Caller, account: TenantAccount, technique: str
) -> None:
    create(caller, account, by_shop(technique))
    fill(account)
    query = {"filter": {"shop": 2, "_id": {"$lt": 20}}, "sort": [["_id", -1]]}
    assert ids(page(caller, **query)) == [17, 14, 11, 8, 5, 2]
    by_shop_alone = {"filter": {"shop": 2}, "sort": [["_id", -1]], "limit": 100}
    assert plan(caller, **by_shop_alone)["index"] == "by-shop"
    assert ids(page(caller, **by_shop_alone)) == list(range(DOCUMENTS - 1, 0, -3))


def test_a_page_that_was_read_by_another_index_is_continued(
    caller: Caller, account: TenantAccount
) -> None:
    create(caller, account, by_shop("lazy"))
    fill(account)
    expected = newest(caller, {1})
    first = page(caller, filter={"shop": 1}, limit=3)
    # The same query is now read by an index with another number.
    renamed = {**by_shop("eager"), "name": "other"}
    caller.patch(path_of(account, "things"), {"indexes": [renamed]})
    index = Index.unscoped.using("relay").get(tenant=account.tenant, name="other")
    backfill.backfill(tenant=str(account.tenant.id), index=index.number)
    assert plan(caller, filter={"shop": 1}, limit=3)["technique"] == "eager"
    second = page(caller, filter={"shop": 1}, limit=3, cursor=first["next_cursor"])
    assert ids(first) + ids(second) == expected[:6]


def test_an_index_with_another_technique_is_rebuilt(caller: Caller, account: TenantAccount) -> None:
    create(caller, account, by_shop("composite"))
    fill(account)
    path = path_of(account, "things")
    changed = caller.patch(path, {"indexes": [by_shop("lazy")]}).json()
    assert techniques(changed) == ["lazy"]
    assert changed["indexes"][0]["state"] == "building"
    index = Index.unscoped.using("relay").filter(tenant=account.tenant, name="by-shop").last()
    assert index is not None
    backfill.backfill(tenant=str(account.tenant.id), index=index.number)
    assert ids(page(caller, filter={"shop": 0}, limit=2)) == newest(caller, {0})[:2]
    # Both names of the technique that Rillbase would choose.
    for technique in ("composite", "auto"):
        caller.patch(path, {"indexes": [by_shop(technique)]})
    last = Index.unscoped.using("relay").filter(tenant=account.tenant).last()
    assert last is not None
    named = caller.patch(path, {"indexes": [by_shop("composite")]}).json()
    assert techniques(named) == ["composite"]
    assert Index.unscoped.using("relay").filter(tenant=account.tenant).last() == last


def test_a_technique_that_is_not_possible_is_rejected(
    caller: Caller, account: TenantAccount
) -> None:
    def pointers(backend: str, index: object) -> list[str]:
        body = {"name": "others", "backend": backend, "indexes": [index]}
        errors = problem(caller.post(path_of(account), body), 400, "invalid_body")["errors"]
        return [error["pointer"] for error in errors]

    technique = ["/indexes/0/technique"]
    assert pointers("postgres", by_shop("lazy")) == technique
    assert pointers("native", by_shop("eager", unique=True)) == technique
    assert pointers("native", by_shop("sorted")) == technique
    create(caller, account, by_shop("composite"), backend="postgres")
    changed = {"indexes": [by_shop("eager")]}
    problem(caller.patch(path_of(account, "things"), changed), 400, "invalid_body")


def test_a_query_whose_index_is_dropped_between_two_parts_starts_over(
    caller: Caller, account: TenantAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(caller, account, by_shop("composite"))
    for start in range(0, 1_000, 500):
        put(account, *({"_id": n, "shop": 1} for n in range(start, start + 500)))
    answers: list[int] = []

    def drop() -> None:
        answers.append(caller.patch(path_of(account, "things"), {"indexes": []}).status_code)

    batches = snapshot._batches

    async def dropped_after_the_first(*arguments: Any) -> AsyncIterator[Any]:
        async for batch in batches(*arguments):
            yield batch
            if not answers:
                await asyncio.to_thread(drop)

    monkeypatch.setattr(snapshot, "_batches", dropped_after_the_first)
    every = page(caller, filter={"shop": 1}, sort=[["_id", -1]], limit=1_000)
    assert answers == [200]
    assert ids(every) == list(range(999, -1, -1))
