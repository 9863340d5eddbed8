"""Calls for single documents."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest

from tests.caller import problem
from tests.documents.collection import CollectionClient, make_collection


@pytest.fixture
def things(server: str) -> CollectionClient:
    return make_collection(server)


def test_an_insert_returns_the_location_of_the_document(
    things: CollectionClient,
) -> None:
    answer = things.caller.post(f"{things.path}/documents", {"title": "Buy milk", "n": 1.5})
    assert answer.status_code == 201
    envelope = answer.json()
    assert envelope["version"] == 1
    assert envelope["document"]["title"] == "Buy milk"
    assert list(envelope["document"]) == ["_id", "title", "n"]
    assert answer.headers["ETag"] == '"v1"'
    assert answer.headers["Location"].endswith(envelope["id"]["$oid"])
    read = things.caller.get(answer.headers["Location"])
    assert read.status_code == 200
    assert read.json() == envelope


def test_a_taken_id_is_rejected_and_changes_nothing(things: CollectionClient) -> None:
    things.insert({"_id": "a", "n": 1})
    problem(things.caller.post(f"{things.path}/documents", {"_id": "a"}), 409, "duplicate_id")
    assert things.query({"_id": "a"}) == [{"_id": "a", "n": 1}]


@pytest.mark.parametrize(
    ("identity", "segment"),
    [
        ("plain", "plain"),
        ("with/slash", "with%2Fslash"),
        ("", "~%22%22"),
        (".", "~%22.%22"),
        ("..", "~%22..%22"),
        ("~tilde", "~%22~tilde%22"),
        ("0123456789abcdef01234567", "~%220123456789abcdef01234567%22"),
        ({"$oid": "0123456789abcdef01234567"}, "0123456789abcdef01234567"),
        (7, "~%7B%22%24numberInt%22%3A%227%22%7D"),
        (2.5, "~2.5"),
        (None, "~null"),
        ({"a": 1, "b": "x"}, "~" + quote('{"a":1,"b":"x"}')),
        ("naïve ☃", quote("naïve ☃")),
    ],
)
def test_every_kind_of_id_can_be_used_in_a_url(
    things: CollectionClient, identity: object, segment: str
) -> None:
    created = things.caller.post(f"{things.path}/documents", {"_id": identity, "n": 1})
    assert created.status_code == 201, created.text
    for path in (f"{things.path}/documents/{segment}", created.headers["Location"]):
        read = things.caller.get(path)
        assert read.status_code == 200, (path, read.text)
        assert read.json()["document"] == {"_id": identity, "n": 1}


@pytest.mark.parametrize(
    "identity", [[1], {"$regularExpression": {"pattern": "a", "options": ""}}, "x" * 2000]
)
def test_invalid_ids_are_rejected(things: CollectionClient, identity: object) -> None:
    problem(things.caller.post(f"{things.path}/documents", {"_id": identity}), 400, "invalid_id")


def test_put_creates_then_replaces(things: CollectionClient) -> None:
    path = f"{things.path}/documents/a"
    first = things.caller.put(path, {"n": 1})
    assert (first.status_code, first.json()["version"]) == (201, 1)
    second = things.caller.put(path, {"m": 2})
    assert (second.status_code, second.json()["version"]) == (200, 2)
    assert second.json()["document"] == {"_id": "a", "m": 2}
    assert second.json()["created_at"] == first.json()["created_at"]


def test_put_of_another_id_than_that_of_the_path_is_rejected(things: CollectionClient) -> None:
    answer = things.caller.put(f"{things.path}/documents/a", {"_id": "b"})
    assert problem(answer, 400, "invalid_document")["errors"][0]["pointer"] == "/_id"


def test_patch_applies_operators_and_returns_the_after_image(things: CollectionClient) -> None:
    things.insert({"_id": "a", "n": 1, "tags": ["x"]})
    answer = things.caller.patch(
        f"{things.path}/documents/a", {"$inc": {"n": 2}, "$push": {"tags": "y"}}
    )
    assert answer.status_code == 200
    assert answer.json()["document"] == {"_id": "a", "n": 3, "tags": ["x", "y"]}
    assert answer.json()["version"] == 2


def test_patch_accepts_merge_patches(things: CollectionClient) -> None:
    things.insert({"_id": "a", "n": 1, "deep": {"x": 1, "y": 2}})
    answer = things.caller.call(
        "PATCH",
        f"{things.path}/documents/a",
        {"n": None, "deep": {"x": 3}},
        Content_Type="application/merge-patch+json",
    )
    assert answer.json()["document"] == {"_id": "a", "deep": {"x": 3, "y": 2}}


def test_patch_of_an_absent_document_needs_upsert(things: CollectionClient) -> None:
    path = f"{things.path}/documents/a"
    problem(things.caller.patch(path, {"$inc": {"n": 1}}), 404, "not_found")
    created = things.caller.patch(path + "?upsert=true", {"$inc": {"n": 1}})
    assert (created.status_code, created.json()["document"]) == (201, {"_id": "a", "n": 1})


def test_array_filters_can_be_given_in_the_url(things: CollectionClient) -> None:
    things.insert({"_id": "a", "v": [1, 5, 9]})
    filters = quote(json.dumps([{"big": {"$gt": 4}}]))
    answer = things.caller.patch(
        f"{things.path}/documents/a?array_filters={filters}", {"$set": {"v.$[big]": 0}}
    )
    assert answer.json()["document"]["v"] == [1, 0, 0]


def test_the_version_of_a_deleted_document_is_never_reused(
    things: CollectionClient,
) -> None:
    things.insert({"_id": "a"})
    path = f"{things.path}/documents/a"
    assert things.caller.delete(path).status_code == 204
    problem(things.caller.get(path), 404, "not_found")
    problem(things.caller.delete(path), 404, "not_found")
    assert things.insert({"_id": "a"})["version"] == 3


def test_preconditions_are_enforced(things: CollectionClient) -> None:
    things.insert({"_id": "a"})
    path = f"{things.path}/documents/a"
    problem(things.caller.put(path, {}, If_Match='"v2"'), 412, "precondition_failed")
    problem(things.caller.put(path, {}, If_None_Match="*"), 412, "precondition_failed")
    problem(things.caller.put(path + "x", {}, If_Match="*"), 412, "precondition_failed")
    assert things.caller.put(path, {}, If_Match='"v1"').status_code == 200
    problem(things.caller.delete(path, If_Match='"v1"'), 412, "precondition_failed")
    assert things.caller.get(path, If_None_Match='"v2"').status_code == 304


def test_a_repeated_idempotency_key_writes_once(things: CollectionClient) -> None:
    path = f"{things.path}/documents"
    first = things.caller.post(path, {"n": 1}, Idempotency_Key="k1")
    again = things.caller.post(path, {"n": 1}, Idempotency_Key="k1")
    assert (again.status_code, again.json()) == (201, first.json())
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.headers["Location"] == first.headers["Location"]
    other = things.caller.post(path, {"n": 2}, Idempotency_Key="k1")
    problem(other, 422, "idempotency_mismatch")
    assert len(things.query()) == 1


def test_documents_keep_every_type_and_the_order_of_their_fields(things: CollectionClient) -> None:
    text = (
        '{"_id":"x","z":{"$numberInt":"1"},"a":{"$numberLong":"1"},"d":{"$numberDouble":"1.0"},'
        '"m":{"$numberDecimal":"1.10"},"n":{"$numberDouble":"NaN"},"b":{"$binary":{"base64":"AAE=",'
        '"subType":"05"}},"t":{"$timestamp":{"t":1,"i":2}},"k":{"$minKey":1},"K":{"$maxKey":1},'
        '"u":{"$undefined":true},"e":{"$date":{"$numberLong":"-1"}}}'
    )
    created = things.caller.call("POST", f"{things.path}/documents", raw=text.encode())
    assert created.status_code == 201, created.text
    read = things.caller.get(f"{things.path}/documents/x", Rillbase_EJSON="canonical")
    assert text in read.text


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"[]", "invalid_body"),
        (b"1", "invalid_body"),
        (b'{"a":', "invalid_json"),
        (b'{"a":1,"a":2}', "invalid_json"),
        (b'{"a":"\xff"}', "invalid_json"),
        (b'{"a":"\\u0000"}', "invalid_json"),
        (b'{"a":{"$oid":"zz"}}', "invalid_json"),
        (b'{"a":' + b"[" * 200 + b"]" * 200 + b"}", "nesting_too_deep"),
    ],
)
def test_bad_documents_get_a_clear_error(things: CollectionClient, body: bytes, code: str) -> None:
    problem(things.caller.call("POST", f"{things.path}/documents", raw=body), 400, code)
    assert things.query() == []


def test_a_schema_is_enforced_and_errors_name_the_fields(server: str) -> None:
    schema = {
        "bsonType": "object",
        "required": ["title"],
        "properties": {"title": {"bsonType": "string"}, "rank": {"bsonType": "int", "minimum": 0}},
    }
    things = make_collection(server, schema=schema)
    answer = things.caller.post(f"{things.path}/documents", {"title": 1, "rank": -1})
    pointers = {error["pointer"] for error in problem(answer, 400, "invalid_document")["errors"]}
    assert pointers == {"/title", "/rank"}
    things.insert({"_id": "a", "title": "x"})
    problem(
        things.caller.patch(f"{things.path}/documents/a", {"$unset": {"title": 1}}),
        400,
        "invalid_document",
    )


def test_a_missing_collection_is_not_found(things: CollectionClient) -> None:
    problem(things.caller.get("/v1/collections/nowhere/documents/a"), 404, "not_found")
    problem(things.caller.post("/v1/collections/nowhere/documents", {}), 404, "not_found")
    problem(things.caller.get("/v1/collections/No%2Fname/documents/a"), 404, "not_found")


def test_wrong_methods_and_wrong_paths_get_different_errors(things: CollectionClient) -> None:
    answer = things.caller.delete(f"{things.path}/documents")
    problem(answer, 405, "method_not_allowed")
    assert answer.headers["Allow"] == "GET, POST"
    problem(things.caller.get(f"{things.path}/nothing"), 404, "not_found")
    problem(things.caller.post(f"{things.path}/query%0A", {}), 404, "not_found")
    problem(things.caller.get(f"{things.path}/documents/a?x=1"), 400, "invalid_parameter")


@pytest.mark.parametrize("filters", [5, "x", {}, {"e": {"$gt": 1}}, True])
def test_the_error_names_array_filters_of_the_wrong_type(
    things: CollectionClient, filters: object
) -> None:
    things.insert({"_id": "a", "xs": [1, 2]})
    change = {"$set": {"xs.$[e]": 5}}
    given = quote(json.dumps(filters))
    one = things.caller.patch(f"{things.path}/documents/a?array_filters={given}", change)
    body = {"filter": {}, "update": change, "array_filters": filters}
    matching = things.caller.post(f"{things.path}/documents:update", body)
    for answer in (one, matching):
        (error,) = problem(answer, 400, "invalid_update")["errors"]
        assert error["pointer"].startswith("/array_filters")
    assert things.query() == [{"_id": "a", "xs": [1, 2]}]


@pytest.mark.parametrize("update", [5, "x", [], None])
def test_the_error_names_an_update_that_is_not_an_object(
    things: CollectionClient, update: object
) -> None:
    answer = things.caller.post(f"{things.path}/documents:update", {"filter": {}, "update": update})
    (error,) = problem(answer, 400, "invalid_update")["errors"]
    assert error["pointer"] == "/update"
