"""End users and anonymous callers may do what the collection's rules say, and nothing else."""

from __future__ import annotations

import time
from typing import Any

import jwt
import pytest

from documents.models import Collection
from foundation.scope import scoped
from tenants.models import ApiKey
from tests.caller import Caller, problem, with_key
from tests.documents.collection import CollectionClient, make_collection
from tests.make import make_key
from tests.waiting import wait_until

ISSUER, AUDIENCE = "https://login.example.com/", "todo-app"
SECRET = "a shared secret of at least thirty-two bytes"
OWN = {"owner": {"$auth": "sub"}}
RULES: dict[str, Any] = {
    "read": {"$or": [OWN, {"public": True}]},
    "create": OWN,
    "update": OWN,
    "delete": {"$and": [OWN, {"locked": {"$ne": True}}]},
}


@pytest.fixture
def todos(server: str) -> CollectionClient:
    todos = make_collection(server, rules=RULES)
    body = {
        "name": "login",
        "issuer": ISSUER,
        "audience": AUDIENCE,
        "algorithms": ["HS256"],
        "secret": SECRET,
    }
    account = todos.account
    answer = with_key(server, account.admin_key).post(
        f"/api/v1/tenants/{account.slug}/issuers", body
    )
    assert answer.status_code == 201, answer.text
    todos.insert_many(
        [
            {"_id": "ada's", "owner": "ada"},
            {"_id": "bob's", "owner": "bob"},
            {"_id": "open", "owner": "bob", "public": True},
            {"_id": "locked", "owner": "ada", "locked": True},
        ]
    )
    return todos


def user(todos: CollectionClient, sub: object = "ada", **claims: object) -> Caller:
    now = int(time.time())
    payload = {"iss": ISSUER, "aud": AUDIENCE, "sub": sub, "exp": now + 60, **claims}
    key = make_key(
        todos.account.tenant,
        kind=ApiKey.Kind.PUBLISHABLE,
        scopes=["documents:read", "documents:write"],
    )
    token = jwt.encode(payload, SECRET, "HS256")
    return Caller(todos.caller.base, {"Rillbase-Key": key, "Authorization": f"Bearer {token}"})


def ids_of(todos: CollectionClient, caller: Caller) -> list[str]:
    answer = caller.post(f"{todos.path}/query", {})
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


def test_every_kind_of_read_obeys_the_read_rule(todos: CollectionClient) -> None:
    ada = user(todos)
    assert ids_of(todos, ada) == ["ada's", "locked", "open"]
    assert ada.post(f"{todos.path}/count", {}).json() == {"count": 3}
    assert ada.get(f"{todos.path}/documents/open").status_code == 200
    problem(ada.get(f"{todos.path}/documents/bob's"), 404, "not_found")
    ids = {"ids": ["ada's", "bob's", "open"]}
    many = ada.post(f"{todos.path}/documents:get", ids).json()["items"]
    assert [item["id"] for item in many] == ["ada's", "open"]


def test_access_rules_do_not_apply_to_keys_and_members(todos: CollectionClient) -> None:
    assert len(todos.ids()) == 4


def test_a_new_document_must_match_the_create_rule(todos: CollectionClient) -> None:
    ada = user(todos)
    created = ada.post(f"{todos.path}/documents", {"_id": "x", "owner": "ada"})
    assert created.status_code == 201
    for owner in ("bob", ["ada"], None):
        body = {"owner": owner} if owner is not None else {}
        answer = ada.post(f"{todos.path}/documents", body)
        if owner == ["ada"]:  # an array that holds the value matches, as everywhere
            assert answer.status_code == 201
        else:
            problem(answer, 403, "forbidden")
    problem(ada.put(f"{todos.path}/documents/new", {"owner": "bob"}), 403, "forbidden")


def test_an_update_must_match_before_and_after(todos: CollectionClient) -> None:
    ada = user(todos)
    path = f"{todos.path}/documents"
    assert ada.patch(f"{path}/ada's", {"$set": {"done": True}}).status_code == 200
    problem(ada.patch(f"{path}/ada's", {"$set": {"owner": "bob"}}), 403, "forbidden")
    problem(ada.patch(f"{path}/open", {"$set": {"x": 1}}), 403, "forbidden")
    problem(ada.put(f"{path}/bob's", {"owner": "ada"}), 403, "forbidden")
    assert todos.query({"_id": "ada's"}) == [{"_id": "ada's", "owner": "ada", "done": True}]


def test_hidden_documents_do_not_exist_for_changes(todos: CollectionClient) -> None:
    ada = user(todos)
    path = f"{todos.path}/documents/bob's"
    problem(ada.patch(path, {"$set": {"x": 1}}), 404, "not_found")
    problem(ada.delete(path), 404, "not_found")


def test_a_delete_must_match_the_delete_rule(todos: CollectionClient) -> None:
    ada = user(todos)
    problem(ada.delete(f"{todos.path}/documents/locked"), 403, "forbidden")
    assert ada.delete(f"{todos.path}/documents/ada's").status_code == 204


def test_changes_by_filter_obey_the_rules(todos: CollectionClient) -> None:
    ada = user(todos)
    body = {"filter": {}, "update": {"$set": {"seen": 1}}}
    problem(ada.post(f"{todos.path}/documents:update", body), 403, "forbidden")
    own = {"filter": {"owner": "ada"}, "update": {"$set": {"seen": 1}}}
    assert ada.post(f"{todos.path}/documents:update", own).json()["changed"] == 2
    assert todos.ids({"seen": 1}) == ["ada's", "locked"]


def test_without_a_token_rules_with_claims_are_false(todos: CollectionClient) -> None:
    nobody = todos.anonymous()
    problem(nobody.post(f"{todos.path}/query", {}), 403, "forbidden")
    problem(nobody.post(f"{todos.path}/documents", {"owner": None}), 403, "forbidden")


def test_an_absent_rule_is_false(server: str) -> None:
    collection = make_collection(server, rules={"read": True})
    collection.insert({"_id": "a"})
    nobody = collection.anonymous()
    assert ids_of(collection, nobody) == ["a"]
    problem(nobody.post(f"{collection.path}/documents", {}), 403, "forbidden")
    problem(nobody.put(f"{collection.path}/documents/a", {}), 403, "forbidden")
    problem(nobody.delete(f"{collection.path}/documents/a"), 403, "forbidden")


@pytest.mark.parametrize(
    "claim",
    [
        {"$gt": ""},
        {"$ne": None},
        {"$regex": ".*"},
        [{"$gt": ""}],
        {"$regularExpression": {"pattern": ".*", "options": ""}},
        {"$exists": True},
    ],
)
def test_a_claim_never_becomes_an_operator(todos: CollectionClient, claim: object) -> None:
    with scoped(tenant_id=todos.account.tenant.id):
        Collection.objects.update(
            access_rules='{"read":{"team":{"$auth":"team"}},"create":{"team":{"$auth":"team"}}}',
            write_version=7,
        )
    hostile = user(todos, team=claim)
    wait_until(lambda: ids_of(todos, hostile) == [], what="the new rule to hold")
    problem(hostile.post(f"{todos.path}/documents", {"team": "x"}), 403, "forbidden")


def test_a_rule_can_test_membership_in_a_list_of_claims(
    server: str, todos: CollectionClient
) -> None:
    with scoped(tenant_id=todos.account.tenant.id):
        Collection.objects.update(
            access_rules='{"read":{"owner":{"$in":{"$auth":"realm.friends"}}}}', write_version=7
        )
    social = user(todos, realm={"friends": ["bob"]})
    wait_until(lambda: ids_of(todos, social) == ["bob's", "open"], what="the new rule to hold")
    problem(user(todos).post(f"{todos.path}/query", {}), 403, "forbidden")
    problem(user(todos, realm={"friends": "bob"}).post(f"{todos.path}/query", {}), 403, "forbidden")


def test_a_changed_rule_applies_to_the_next_call(todos: CollectionClient) -> None:
    ada = user(todos)
    assert ids_of(todos, ada) == ["ada's", "locked", "open"]
    todos.change(access_rules='{"read":{"locked":true}}')
    assert ids_of(todos, ada) == ["locked"]
    problem(ada.get(f"{todos.path}/documents/open"), 404, "not_found")
    problem(ada.post(f"{todos.path}/documents", {"owner": "ada"}), 403, "forbidden")


def test_end_users_cannot_explain_queries(todos: CollectionClient) -> None:
    problem(user(todos).post(f"{todos.path}/explain", {}), 403, "forbidden")
    problem(todos.anonymous().post(f"{todos.path}/explain", {}), 403, "forbidden")


def test_the_response_to_a_write_shows_only_readable_documents(server: str) -> None:
    collection = make_collection(server, rules={"create": True})
    answer = collection.anonymous().post(f"{collection.path}/documents", {"secret": 1})
    assert (answer.status_code, answer.json()) == (201, {})
