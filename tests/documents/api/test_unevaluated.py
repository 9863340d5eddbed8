"""A document that a query cannot evaluate is omitted from its result, and does not fail the
query.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from foundation.scope import scoped
from tenants import error_log
from tenants.models import ErrorEntry
from tests.caller import problem
from tests.documents.api.test_access_rules import RULES, user
from tests.documents.api.test_access_rules import todos as ruled
from tests.documents.collection import CollectionClient, make_collection

#: The list has as many elements as `size` says, and an evaluation a million steps.
COSTLY = {"$expr": {"$lt": [{"$size": {"$range": [0, {"$ifNull": ["$size", 0]}]}}, 10]}}
#: The divisor must not be zero.
DIVIDING = {"$expr": {"$gte": [{"$divide": [10, "$size"]}, 1]}}
TOO_LARGE = 100_000_000

__all__ = ["ruled"]


@pytest.fixture
def things(server: str) -> CollectionClient:
    things = make_collection(server)
    things.insert_many(
        [
            {"_id": "a", "size": 3, "ref": "b"},
            {"_id": "huge", "size": TOO_LARGE, "ref": "b"},
            {"_id": "c", "size": 4, "ref": "a"},
        ]
    )
    return things


def notice(body: dict[str, Any]) -> tuple[str, int]:
    (only,) = body["notices"]
    assert only["detail"]
    return only["code"], only["count"]


LEFT_OUT = ("documents_not_evaluated", 1)


@pytest.mark.parametrize("sort", [None, [["size", -1]], [["ref", 1], ["size", 1]]])
def test_a_query_omits_the_document_and_reports_it(things: CollectionClient, sort: Any) -> None:
    body = {"filter": COSTLY, **({"sort": sort} if sort else {})}
    answer = things.ask(body).json()
    assert {item["id"] for item in answer["items"]} == {"a", "c"}
    assert notice(answer) == LEFT_OUT
    assert "notices" not in things.ask({"filter": {"size": {"$gt": 0}}}).json()


def test_counts_groups_lookups_and_pages_omit_the_document_and_report_it(
    things: CollectionClient,
) -> None:
    count = things.caller.post(f"{things.path}/count", {"filter": COSTLY}).json()
    assert (count["count"], notice(count)) == (2, LEFT_OUT)
    group = {"by": [], "measures": {"n": {"op": "count"}}}
    grouped = things.ask({"filter": COSTLY, "group": group}).json()
    assert grouped["rows"][0]["document"] == {"n": 2}
    assert notice(grouped) == LEFT_OUT
    lookup = [{"from": things.name, "local": "ref", "as": "other"}]
    shown = things.ask({"filter": COSTLY, "lookup": lookup}).json()
    assert [item["document"]["other"] for item in shown["items"]][1]["_id"] == "a"
    assert notice(shown) == LEFT_OUT
    first = things.ask({"filter": COSTLY, "limit": 1}).json()
    rest = things.ask({"filter": COSTLY, "cursor": first["next_cursor"]}).json()
    assert [item["id"] for item in first["items"] + rest["items"]] == ["a", "c"]


def test_a_value_that_an_expression_does_not_accept_is_treated_alike(
    things: CollectionClient,
) -> None:
    things.insert({"_id": "zero", "size": 0})
    answer = things.ask({"filter": DIVIDING}).json()
    assert [item["id"] for item in answer["items"]] == ["a", "c"]
    assert notice(answer) == LEFT_OUT


def test_what_cannot_be_grouped_or_looked_up_is_left_out(things: CollectionClient) -> None:
    things.insert({"_id": "wide", "size": 1, "ref": "r" * 2_000})
    group = {"by": ["ref"], "measures": {"n": {"op": "count"}}}
    grouped = things.ask({"group": group}).json()
    assert [row["document"] for row in grouped["rows"]] == [
        {"ref": "a", "n": 1},
        {"ref": "b", "n": 2},
    ]
    assert notice(grouped) == LEFT_OUT
    things.insert({"_id": "many", "size": 1, "ref": [f"r{n}" for n in range(1_001)]})
    shown = things.ask({"lookup": [{"from": things.name, "local": "ref", "as": "other"}]}).json()
    assert [item["id"] for item in shown["items"]] == ["a", "c", "huge", "wide"]
    assert notice(shown) == LEFT_OUT


def test_only_the_id_is_shown_if_a_projection_cannot_be_applied(
    things: CollectionClient,
) -> None:
    things.insert_many([{"_id": "l", "list": [4, 7]}, {"_id": "m", "list": [5], "size": 9}])
    body = {"filter": {"$or": [{"list": 7}, {"size": 9}]}, "projection": {"list.$": 1}}
    answer = things.ask(body).json()
    assert [item["document"] for item in answer["items"]] == [
        {"_id": "l", "list": [7]},
        {"_id": "m"},
    ]
    assert notice(answer) == LEFT_OUT


def test_changes_by_filter_skip_the_document(things: CollectionClient) -> None:
    body = {"filter": COSTLY, "update": {"$set": {"seen": True}}}
    counts = things.caller.post(f"{things.path}/documents:update", body).json()
    assert (counts["changed"], notice(counts)) == (2, LEFT_OUT)
    counts = things.caller.post(f"{things.path}/documents:delete", {"filter": COSTLY}).json()
    assert (counts["changed"], notice(counts)) == (2, LEFT_OUT)
    assert things.ids() == ["huge"]


def test_a_change_by_filter_continues_after_a_document_that_rejects_it(server: str) -> None:
    things = make_collection(server, indexes=[("list", [("list", 1)], False)])
    # An index takes 10,000 keys of a document.
    full = list(range(9_999))
    things.insert_many([{"_id": "a", "list": []}, {"_id": "b", "list": full}, {"_id": "c"}])
    body = {"filter": {}, "update": {"$push": {"list": -1}}}
    counts = things.caller.post(f"{things.path}/documents:update", body).json()
    assert (counts["matched"], counts["changed"], notice(counts)) == (3, 2, LEFT_OUT)
    assert things.ids({"list": -1}) == ["a", "c"]
    error_log.flush()
    with scoped(tenant_id=things.account.tenant.id):
        assert ErrorEntry.objects.filter(code="documents_not_evaluated").exists()


def test_an_export_omits_the_document(things: CollectionClient) -> None:
    costly_filter = quote(json.dumps(COSTLY))
    lines = things.caller.get(f"{things.path}/export?filter={costly_filter}").text
    assert [json.loads(line)["_id"] for line in lines.splitlines()] == ["a", "c"]


def test_explain_and_the_error_log_report_the_document(things: CollectionClient) -> None:
    explained = things.caller.post(f"{things.path}/explain", {"filter": COSTLY}).json()
    assert notice(explained) == LEFT_OUT
    things.ask({"filter": COSTLY})
    error_log.flush()
    with scoped(tenant_id=things.account.tenant.id):
        entry = ErrorEntry.objects.get(code="documents_not_evaluated")
    assert entry.place == f"collection {things.name}"
    assert "1 left out" in entry.detail


def test_only_documents_that_the_caller_may_read_are_counted(ruled: CollectionClient) -> None:
    for owner in ("ada", "bob", "bob"):
        ruled.insert({"owner": owner, "size": TOO_LARGE})
    everybody = ruled.ask({"filter": COSTLY}).json()
    assert notice(everybody) == ("documents_not_evaluated", 3)
    ada = user(ruled)
    for path, body in (("query", {}), ("count", {}), ("query", {"sort": [["size", 1]]})):
        answer = ada.post(f"{ruled.path}/{path}", {"filter": COSTLY, **body}).json()
        assert notice(answer) == LEFT_OUT
    eve = user(ruled, "eve")
    assert "notices" not in eve.post(f"{ruled.path}/query", {"filter": COSTLY}).json()


def test_a_rule_that_cannot_be_evaluated_allows_nothing(server: str) -> None:
    rules = {"read": COSTLY, "create": COSTLY, "update": True, "delete": True}
    things = make_collection(server, rules=rules)
    things.insert({"_id": "huge", "size": TOO_LARGE})
    things.insert({"_id": "a", "size": 1})
    nobody = things.anonymous()
    answer = nobody.post(f"{things.path}/query", {}).json()
    assert [item["id"] for item in answer["items"]] == ["a"]
    assert "notices" not in answer
    path = f"{things.path}/documents"
    problem(nobody.get(f"{path}/huge"), 404, "not_found")
    problem(nobody.patch(f"{path}/huge", {"$set": {"size": 1}}), 404, "not_found")
    problem(nobody.delete(f"{path}/huge"), 404, "not_found")
    problem(nobody.post(path, {"_id": "b", "size": TOO_LARGE}), 403, "forbidden")
    assert nobody.post(path, {"_id": "b", "size": 1}).status_code == 201
    assert things.ids() == ["a", "b", "huge"]


def test_a_schema_that_cannot_be_evaluated_rejects_the_write(server: str) -> None:
    listed = {"bsonType": "array", "items": {"bsonType": "int"}}
    # Each of the branches examines the whole list.
    schema = {"properties": {"list": {"allOf": [listed] * 30}}}
    things = make_collection(server, schema=schema)
    assert things.insert({"_id": "a", "list": [1, 2]})
    answer = things.caller.post(f"{things.path}/documents", {"_id": "b", "list": [1] * 99_000})
    refusal = problem(answer, 422, "query_too_expensive")
    assert "schema" in refusal["detail"]
    assert things.ids() == ["a"]


def test_parallel_arrays_are_found_with_any_order_and_index(server: str) -> None:
    fields = [("rank", 1), ("title", 1)]
    things = make_collection(server, indexes=[("both", fields, False)])
    things.insert_many(
        [
            {"_id": "plain", "rank": 2, "title": "b"},
            {"_id": "lists", "rank": [3, 1], "title": ["z", "c"]},
            {"_id": "last", "rank": 9, "title": "a"},
        ]
    )
    ascending = [["rank", 1], ["title", 1]]
    descending = [["rank", -1], ["title", -1]]
    assert things.ids(sort=ascending) == ["lists", "plain", "last"]
    assert things.ids(sort=descending) == ["last", "lists", "plain"]
    assert things.ids({"rank": 3}, sort=[["title", 1]]) == ["lists"]
    assert things.ids({"rank": {"$gt": 1}, "title": {"$lt": "d"}}) == ["last", "lists", "plain"]
    assert things.ids(sort=[["title", -1], ["rank", 1]]) == ["lists", "plain", "last"]
    first = things.ask({"sort": ascending, "limit": 1}).json()
    rest = things.ask({"sort": ascending, "cursor": first["next_cursor"]}).json()
    assert [item["id"] for item in first["items"] + rest["items"]] == ["lists", "plain", "last"]


LONG = [None] * 100_001
WIDE = {f"a{n}": [0] * 90_000 for n in range(6)}


def test_every_kind_of_write_rejects_documents_with_too_many_elements(
    server: str,
) -> None:
    things = make_collection(server, rules=RULES)
    path, caller = f"{things.path}/documents", things.caller
    refusal = problem(caller.post(path, {"x": {"list": LONG}}), 413, "array_too_long")
    assert refusal["errors"][0]["pointer"] == "/x/list"
    problem(caller.post(path, WIDE), 413, "document_too_complex")
    problem(caller.put(f"{path}/p", {"list": LONG}), 413, "array_too_long")
    things.insert({"_id": "full", "list": LONG[1:]})
    problem(caller.patch(f"{path}/full", {"$push": {"list": 1}}), 413, "array_too_long")
    merge = "application/merge-patch+json"
    answer = caller.patch(f"{path}/full", {"list": LONG}, Content_Type=merge)
    problem(answer, 413, "array_too_long")
    bulk = {"operations": [{"insert": {"_id": "b", "list": LONG}}], "ordered": False}
    (result,) = caller.post(f"{path}:bulk", bulk).json()["results"]
    assert result["error"]["code"] == "array_too_long"
    operation = {"collection": things.name, "insert": {"_id": "t", "list": LONG}}
    answer = caller.post("/v1/transactions", {"operations": [operation]})
    problem(answer, 413, "array_too_long")
    assert caller.get(f"{path}/full").status_code == 200
    assert things.ids() == ["full"]
