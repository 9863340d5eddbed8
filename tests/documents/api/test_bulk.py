"""Many operations at once, and transactions over collections."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
import requests

from documents.store.attempt import WriteAttempt
from tests.caller import problem, with_key
from tests.documents.collection import CollectionClient, make_collection
from tests.make import make_key


@pytest.fixture
def things(server: str) -> CollectionClient:
    return make_collection(server)


@pytest.fixture
def coded(server: str) -> CollectionClient:
    """A collection in which `code` is unique."""
    return make_collection(server, indexes=[("code", [("code", 1)], True)])


def bulk(
    things: CollectionClient, operations: Sequence[object], **more: object
) -> requests.Response:
    body = {"operations": operations, **more}
    return things.caller.post(f"{things.path}/documents:bulk", body)


def test_a_batch_executes_each_kind_of_operation_in_order(things: CollectionClient) -> None:
    things.insert_many([{"_id": "gone"}, {"_id": "changed", "n": 1}])
    answer = bulk(
        things,
        [
            {"insert": {"_id": "new"}},
            {"update": {"id": "changed", "update": {"$inc": {"n": 1}}}},
            {"replace": {"id": "made", "document": {"x": 1}}},
            {"delete": {"id": "gone"}},
            {"update": {"id": "new", "update": {"$set": {"y": 2}}}},
        ],
    )
    assert answer.json()["results"] == [
        {"id": "new", "version": 1},
        {"id": "changed", "version": 2},
        {"id": "made", "version": 1},
        {"id": "gone", "version": 2},
        {"id": "new", "version": 2},
    ]
    assert things.query() == [
        {"_id": "changed", "n": 2},
        {"_id": "made", "x": 1},
        {"_id": "new", "y": 2},
    ]


def test_an_ordered_batch_is_all_or_nothing_and_reports_the_position(
    things: CollectionClient,
) -> None:
    things.insert({"_id": "taken"})
    answer = bulk(things, [{"insert": {"_id": "a"}}, {"insert": {"_id": "taken"}}])
    assert problem(answer, 409, "duplicate_id")["errors"][0]["pointer"] == "/operations/1"
    assert things.ids() == ["taken"]


def test_an_unordered_batch_reports_each_error_in_its_place(coded: CollectionClient) -> None:
    coded.insert({"_id": "taken", "code": 7})
    answer = bulk(
        coded,
        [
            {"insert": {"_id": "a", "code": 1}},
            {"insert": {"_id": "taken", "code": 2}},
            {"update": {"id": "a", "update": {"$nonsense": 1}}},
            {"delete": {"id": "nowhere"}},
            {"insert": {"_id": "b", "code": 7}},
            {"insert": {"_id": "c", "code": 3}},
        ],
        ordered=False,
    )
    assert answer.status_code == 200
    results = answer.json()["results"]
    codes = [result.get("error", {}).get("code") for result in results]
    assert codes == [
        None,
        "duplicate_id",
        "unsupported_operator",
        "not_found",
        "duplicate_key",
        None,
    ]
    assert coded.ids() == ["a", "c", "taken"]


def test_a_batch_can_be_sent_as_lines(things: CollectionClient) -> None:
    lines = b'{"insert":{"_id":"a"}}\n\n{"insert":{"_id":"b"}}\n'
    answer = things.caller.call(
        "POST", f"{things.path}/documents:bulk", raw=lines, Content_Type="application/x-ndjson"
    )
    assert [result["id"] for result in answer.json()["results"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("operations", "pointer"),
    [
        ([{"insert": {"_id": [1]}}], "/operations/0/insert"),
        ([{"insert": {}}, {"explode": {}}], "/operations/1/explode"),
        ([{"insert": {}, "delete": {"id": 1}}], "/operations/0/delete"),
        ([{"update": {"id": 1}}], "/operations/0/update/update"),
        ([{"update": {"id": 1, "update": {"$inc": {"a": "x"}}}}], "/operations/0/update/update"),
        ([{}], "/operations/0"),
        ([{"delete": {"id": 1, "x": 1}}], "/operations/0/delete/x"),
    ],
)
def test_the_error_points_to_a_malformed_operation(
    things: CollectionClient, operations: list[object], pointer: str
) -> None:
    answer = bulk(things, operations)
    assert answer.status_code == 400, answer.text
    assert answer.json()["errors"][0]["pointer"].startswith(pointer)
    assert things.ids() == []


def test_the_error_names_a_taken_key_of_a_unique_index(coded: CollectionClient) -> None:
    coded.insert({"_id": "a", "code": 1})
    answer = coded.caller.post(f"{coded.path}/documents", {"_id": "b", "code": 1})
    assert "code" in problem(answer, 409, "duplicate_key")["errors"][0]["detail"]
    problem(bulk(coded, [{"insert": {"_id": "c", "code": 1}}]), 409, "duplicate_key")
    assert coded.ids() == ["a"]
    coded.caller.delete(f"{coded.path}/documents/a")
    coded.insert({"_id": "b", "code": 1})


def test_versions_are_checked_if_they_are_given(things: CollectionClient) -> None:
    things.insert({"_id": "a"})
    stale = {"delete": {"id": "a"}, "if_version": 2}
    problem(bulk(things, [stale]), 412, "precondition_failed")
    assert bulk(things, [{**stale, "if_version": 1}]).status_code == 200


def test_a_repeated_batch_takes_effect_once(things: CollectionClient) -> None:
    body = {"operations": [{"insert": {"n": 1}}, {"insert": {"n": 2}}]}
    path = f"{things.path}/documents:bulk"
    first = things.caller.post(path, body, Idempotency_Key="b1")
    again = things.caller.post(path, body, Idempotency_Key="b1")
    assert again.json() == first.json()
    assert len(things.ids()) == 2


def test_too_many_operations_are_rejected(things: CollectionClient) -> None:
    answer = bulk(things, [{"delete": {"id": 1}}] * 10_001)
    assert problem(answer, 400, "invalid_body")["errors"][0]["pointer"] == "/operations"


def test_a_transaction_spans_collections_and_is_all_or_nothing(things: CollectionClient) -> None:
    other = make_collection(things.caller.base, account=things.account)
    things.insert({"_id": "a", "n": 10})
    both = [
        {"collection": things.name, "update": {"id": "a", "update": {"$inc": {"n": -3}}}},
        {"collection": other.name, "replace": {"id": "a", "document": {"n": 3}}},
    ]
    answer = things.caller.post("/v1/transactions", {"operations": both})
    assert [result["version"] for result in answer.json()["results"]] == [2, 1]
    failing = [*both, {"collection": other.name, "insert": {"_id": "a"}}]
    refusal = things.caller.post("/v1/transactions", {"operations": failing})
    assert problem(refusal, 409, "duplicate_id")["errors"][0]["pointer"] == "/operations/2"
    assert things.query() == [{"_id": "a", "n": 7}]
    assert other.query() == [{"_id": "a", "n": 3}]


def test_a_key_for_one_collection_cannot_access_another(things: CollectionClient) -> None:
    other = make_collection(things.caller.base, account=things.account)
    key = make_key(
        things.account.tenant,
        scopes=["documents:read", "documents:write"],
        collections=[things.name],
    )
    caller = with_key(things.caller.base, key)
    assert caller.post(f"{things.path}/documents", {"_id": "a"}).status_code == 201
    problem(caller.get(f"{other.path}/documents/a"), 403, "forbidden")
    operations = [{"collection": other.name, "insert": {}}]
    problem(caller.post("/v1/transactions", {"operations": operations}), 403, "forbidden")


def test_a_read_only_key_cannot_write(things: CollectionClient) -> None:
    caller = with_key(
        things.caller.base, make_key(things.account.tenant, scopes=["documents:read"])
    )
    problem(caller.post(f"{things.path}/documents", {}), 403, "missing_scope")
    assert caller.post(f"{things.path}/query", {}).status_code == 200


def test_a_large_batch_is_written_completely(things: CollectionClient) -> None:
    plain = make_collection(things.caller.base, account=things.account)
    plain.insert_many([{"_id": n, "pad": "x" * 100} for n in range(3_000)])
    counted = plain.caller.post(f"{plain.path}/count", {})
    assert counted.json() == {"count": 3_000}
    assert json.loads(plain.ask({"limit": 10_000}).text)["next_cursor"] is None


@pytest.mark.backend("postgres", reason="it counts PostgreSQL's transactions")
def test_only_operations_that_take_a_key_are_rejected_and_the_others_are_one_transaction(
    coded: CollectionClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    coded.insert_many([{"_id": f"old{code}", "code": code} for code in range(50)])
    attempts: list[int] = []
    run = WriteAttempt.run

    async def counted(self: WriteAttempt) -> list[Any]:
        attempts.append(1)
        return await run(self)

    monkeypatch.setattr(WriteAttempt, "run", counted)
    operations = [{"insert": {"_id": f"new{n}", "code": n % 60}} for n in range(120)]
    answer = bulk(coded, [*operations, {"delete": {"id": "old3"}}], ordered=False)
    results = answer.json()["results"]
    accepted = [result["id"] for result in results if "error" not in result]
    codes = {result["error"]["code"] for result in results if "error" in result}
    assert accepted == [*(f"new{n}" for n in range(50, 60)), "old3"]
    assert codes == {"duplicate_key"}
    # The first finds the keys of other documents.
    assert len(attempts) == 2


def test_operations_may_exchange_keys_of_a_unique_index(
    coded: CollectionClient,
) -> None:
    coded.insert_many([{"_id": n, "code": n} for n in range(10)])
    moves = [{"update": {"id": n, "update": {"$inc": {"code": 1}}}} for n in range(10)]
    assert bulk(coded, moves).status_code == 200
    assert [document["code"] for document in coded.query()] == list(range(1, 11))
    coded.insert({"_id": "end", "code": 11})
    refusal = bulk(coded, moves)
    # Once there is a conflict, each operation finds the keys that those before it have left.
    assert problem(refusal, 409, "duplicate_key")["errors"][0]["pointer"] == "/operations/0"
    assert (
        bulk(coded, moves[::-1], ordered=False).json()["results"][0]["error"]["code"]
        == "duplicate_key"
    )
    assert [document["code"] for document in coded.query({"_id": {"$ne": "end"}})] == list(
        range(1, 11)
    )
