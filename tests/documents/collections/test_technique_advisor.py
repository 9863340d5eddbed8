"""The technique of an automatic index follows how the index is used."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from documents.collections import backfill, technique_advisor
from documents.collections.technique_advisor import advise_on
from documents.models import Index
from documents.store.node.definitions import IndexViolated
from tests.caller import Caller
from tests.documents.collections import stored_documents
from tests.make import TenantAccount

BY_SHOP = {"name": "by-shop", "fields": [["shop", 1]]}
NEWEST = {"filter": {"shop": 1}, "sort": [["$updated", -1]], "limit": 3}
ALL = {"filter": {"shop": 1}, "limit": 3}
DOCUMENTS = 400
START = datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC)


def hours(number: int) -> datetime.datetime:
    return START + datetime.timedelta(hours=number)


def path_of(account: TenantAccount, name: str = "") -> str:
    return f"/api/v1/tenants/{account.slug}/collections" + (f"/{name}" if name else "")


def create(caller: Caller, account: TenantAccount, **fields: object) -> None:
    body = {"name": "things", "backend": "native", "indexes": [BY_SHOP], **fields}
    answer = caller.post(path_of(account), body)
    assert answer.status_code == 201, answer.text
    shops = ({"_id": n, "shop": n % 2, "code": n} for n in range(DOCUMENTS))
    stored_documents.put(account.tenant.id, "things", shops)


def query(caller: Caller, times: int, **query: object) -> list[Any]:
    answers = [caller.post("/v1/collections/things/query", query) for _ in range(times)]
    return [item["id"] for item in answers[-1].json()["items"]]


def rows(account: TenantAccount) -> list[Index]:
    """Return the rows of all indexes, oldest first."""
    return list(Index.unscoped.using("relay").filter(tenant=account.tenant).order_by("number"))


def advise(account: TenantAccount, number: int) -> None:
    """Let the advisor read the counters at an hour."""
    advise_on(account.tenant.id, rows(account)[0].collection_id, hours(number))


def shown(caller: Caller, account: TenantAccount) -> list[dict[str, Any]]:
    indexes: list[dict[str, Any]] = caller.get(path_of(account, "things")).json()["indexes"]
    return indexes


def plan(caller: Caller, **query: object) -> dict[str, Any]:
    answer: dict[str, Any] = caller.post("/v1/collections/things/explain", query).json()
    return answer


def use_for_a_day(caller: Caller, account: TenantAccount) -> None:
    """Ask for the newest documents until a replacement is being built."""
    for number in (0, 24):
        query(caller, 110, **NEWEST)
        advise(account, number)


def build(account: TenantAccount) -> None:
    for index in rows(account):
        if index.state == Index.State.BUILDING:
            backfill.backfill(tenant=str(account.tenant.id), index=index.number)


def test_how_an_index_was_used_and_what_suits_it_is_shown(
    caller: Caller, account: TenantAccount
) -> None:
    create(caller, account)
    assert shown(caller, account)[0]["advice"] is None
    query(caller, 100, **NEWEST)
    query(caller, 10, **ALL)
    caller.get('/v1/collections/things/documents/~{"$numberInt":"7"}')
    advise(account, 0)
    (index,) = shown(caller, account)
    advice = index["advice"]
    assert advice["use"] == {
        "reads": 111,
        "writes": DOCUMENTS,
        "lookups": 110,
        "newest": 100,
        "ordered": 0,
        "entries": DOCUMENTS / 2,
        "block_share": None,
    }
    assert (index["technique"], index["technique_in_use"]) == ("auto", "composite")
    assert (advice["technique"], advice["since"]) == ("lazy", "2026-03-01T00:00:00.000Z")
    assert advice["gain"] > technique_advisor.MIN_GAIN
    explained = plan(caller, **NEWEST)
    assert explained["plan"]["technique"] == "composite"
    assert explained["advice"] == advice
    assert plan(caller, filter={"_id": 1})["advice"] is None


def test_advice_is_shown_although_the_version_is_the_same(
    caller: Caller, account: TenantAccount
) -> None:
    create(caller, account)
    query(caller, 110, **NEWEST)
    advise(account, 0)
    first = caller.get(path_of(account, "things"))
    query(caller, 110, **ALL)
    advise(account, 1)
    condition = {"If-None-Match": first.headers["ETag"]}
    second = caller.get(path_of(account, "things"), **condition)
    assert second.status_code == 200
    assert second.json()["indexes"] != first.json()["indexes"]


def test_after_a_day_the_index_is_rebuilt_and_replaces_the_other(
    caller: Caller, account: TenantAccount
) -> None:
    create(caller, account)
    use_for_a_day(caller, account)
    old, new = rows(account)
    assert (old.state, new.state) == ("ready", "building")
    (index,) = shown(caller, account)
    assert (index["state"], index["technique_in_use"]) == ("ready", "composite")
    listed = caller.get(path_of(account)).json()["items"][0]["indexes"]
    assert listed == [index]
    assert plan(caller, **NEWEST)["plan"]["technique"] == "composite"
    stored_documents.put(account.tenant.id, "things", [{"_id": "during", "shop": 1}])
    build(account)
    old, new = rows(account)
    assert (old.state, new.state, new.replaces_id) == ("dropping", "ready", None)
    (index,) = shown(caller, account)
    assert {name: index[name] for name in ("name", "technique", "technique_in_use", "state")} == {
        "name": "by-shop",
        "technique": "auto",
        "technique_in_use": "lazy",
        "state": "ready",
    }
    explained = plan(caller, **NEWEST)["plan"]
    assert (explained["technique"], explained["order"]) == ("lazy", "by time, the newest first")
    assert query(caller, 1, **NEWEST)[0] == "during"
    every = query(caller, 1, filter={"shop": 1}, limit=1_000)
    assert len(every) == DOCUMENTS / 2 + 1


def test_a_replaced_index_is_declared_as_before(caller: Caller, account: TenantAccount) -> None:
    create(caller, account)
    use_for_a_day(caller, account)
    build(account)
    numbers = [index.number for index in rows(account)]
    declared = {**BY_SHOP, "technique": "auto"}
    changed = caller.patch(path_of(account, "things"), {"indexes": [declared]}).json()
    assert changed["indexes"][0]["technique_in_use"] == "lazy"
    pinned = caller.patch(
        path_of(account, "things"), {"indexes": [{**BY_SHOP, "technique": "lazy"}]}
    ).json()
    assert pinned["indexes"][0]["technique"] == "lazy"
    assert [index.number for index in rows(account)] == numbers, "nothing was built again"


def test_a_gain_must_last_a_day(caller: Caller, account: TenantAccount) -> None:
    create(caller, account)
    query(caller, 110, **NEWEST)
    advise(account, 0)
    advise(account, 8)
    assert shown(caller, account)[0]["advice"]["since"] is not None, "a quiet hour says nothing"
    query(caller, 110, **ALL)
    advise(account, 16)
    (index,) = shown(caller, account)
    assert index["advice"]["technique"] == "composite"
    assert index["advice"]["since"] is None
    query(caller, 110, **NEWEST)
    advise(account, 24)
    assert len(rows(account)) == 1
    assert shown(caller, account)[0]["advice"]["since"] == "2026-03-02T00:00:00.000Z"


def test_counters_start_over_with_the_node(caller: Caller, account: TenantAccount) -> None:
    create(caller, account)
    query(caller, 110, **NEWEST)
    advise(account, 0)
    (index,) = rows(account)
    renamed = {**(index.counters or {}), "run": "0" * 32, "lookups": 10**9}
    Index.unscoped.using("relay").filter(number=index.number).update(counters=renamed)
    query(caller, 5, **NEWEST)
    advise(account, 1)
    assert shown(caller, account)[0]["advice"]["use"]["lookups"] == 115


@pytest.mark.parametrize("technique", ["composite", "lazy"])
def test_a_declared_technique_cancels_the_replacement(
    caller: Caller, account: TenantAccount, technique: str
) -> None:
    create(caller, account)
    use_for_a_day(caller, account)
    declared = {**BY_SHOP, "technique": technique}
    caller.patch(path_of(account, "things"), {"indexes": [declared]})
    build(account)
    states = [index.state for index in rows(account)]
    assert (
        states
        == {
            "composite": ["ready", "dropping"],
            "lazy": ["dropping", "dropping", "ready"],
        }[technique]
    )
    (index,) = shown(caller, account)
    assert (index["technique_in_use"], index["advice"]) == (technique, None)
    assert len(query(caller, 1, filter={"shop": 1}, limit=1_000)) == DOCUMENTS / 2


def test_an_index_is_dropped_with_its_replacement(caller: Caller, account: TenantAccount) -> None:
    create(caller, account)
    use_for_a_day(caller, account)
    caller.patch(path_of(account, "things"), {"indexes": []})
    assert [index.state for index in rows(account)] == ["dropping", "dropping"]
    again = caller.patch(path_of(account, "things"), {"indexes": [BY_SHOP]}).json()
    assert again["indexes"][0]["state"] == "building"


def test_a_replacement_that_fails_changes_nothing(
    caller: Caller, account: TenantAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(caller, account)
    use_for_a_day(caller, account)

    def fail(*_: object) -> None:
        raise IndexViolated("a document")

    monkeypatch.setattr(backfill, "build_part", fail)
    build(account)
    assert [index.state for index in rows(account)] == ["ready", "dropping"]
    (index,) = shown(caller, account)
    assert (index["state"], index["error"]) == ("ready", None)
    assert index["advice"] is None, "it is not tried again at once"


def test_an_index_has_one_replacement_at_a_time(caller: Caller, account: TenantAccount) -> None:
    create(caller, account)
    use_for_a_day(caller, account)
    query(caller, 110, **NEWEST)
    advise(account, 48)
    assert len(rows(account)) == 2


def test_the_sweep_reads_the_counters_of_automatic_indexes_once_an_hour(
    caller: Caller, account: TenantAccount
) -> None:
    indexes = [
        BY_SHOP,
        {"name": "by-code", "fields": [["code", 1]], "unique": True},
        {"name": "by-size", "fields": [["size", 1]], "technique": "composite"},
    ]
    create(caller, account, indexes=indexes, ttl={"field": "due", "after_s": 0})
    begin = datetime.datetime.now(datetime.UTC)
    technique_advisor.sweep()
    read = {index.name: index.counters_at for index in rows(account)}
    assert {name for name, at in read.items() if at is not None} == {"by-shop"}
    read_at = read["by-shop"]
    assert read_at is not None
    assert read_at >= begin
    technique_advisor.sweep()
    assert {index.name: index.counters_at for index in rows(account)} == read
