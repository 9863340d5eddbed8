"""The life cycle of collections, as a tenant sees it."""

from __future__ import annotations

import pytest

from foundation.scope import scoped
from tenants.models import ApiKey, AuditEntry, Quota
from tenants.roles import Role
from tests.caller import Caller, problem, signed_in, with_key
from tests.make import TenantAccount, make_key, make_member, make_tenant

RULES = {"read": {"owner": {"$auth": "sub"}}, "create": True, "update": False}
INDEX = {"name": "by-rank", "fields": [["owner", 1], ["rank", -1]]}


@pytest.fixture
def account() -> TenantAccount:
    return make_tenant()


def path_of(account: TenantAccount, name: str = "") -> str:
    return f"/api/v1/tenants/{account.slug}/collections" + (f"/{name}" if name else "")


def create(caller: Caller, account: TenantAccount, **fields: object) -> dict[str, object]:
    answer = caller.post(path_of(account), {"name": "todos", **fields})
    assert answer.status_code == 201, answer.text
    body: dict[str, object] = answer.json()
    return body


def test_a_new_collection_is_returned_as_declared(caller: Caller, account: TenantAccount) -> None:
    body = {
        "name": "todos",
        "schema": {"type": "object", "required": ["title"]},
        "access_rules": RULES,
        "indexes": [INDEX],
        "ttl": {"field": "done_at", "after_s": 60},
        "backend": "postgres",
    }
    answer = caller.post(path_of(account), body)
    assert answer.status_code == 201, answer.text
    assert answer.headers["Location"] == path_of(account, "todos")
    assert answer.headers["ETag"] == '"v1"'
    index = {
        **INDEX,
        "unique": False,
        "technique": "auto",
        "technique_in_use": "composite",
        "advice": None,
        "state": "ready",
        "progress": {"done": 0, "total": 0},
        "error": None,
    }
    read = caller.get(path_of(account, "todos")).json()
    assert read == answer.json()
    shown = {name: read[name] for name in body}
    assert shown == {**body, "indexes": [index]}
    assert read["version"] == 1


def test_a_collection_needs_nothing_but_a_name(caller: Caller, account: TenantAccount) -> None:
    read = create(caller, account)
    assert (read["schema"], read["access_rules"], read["indexes"]) == (None, {}, [])
    assert (read["ttl"], read["backend"]) == (None, "postgres")


def test_schema_and_rules_keep_order_of_members_and_kinds_of_numbers(
    caller: Caller, account: TenantAccount
) -> None:
    raw = (
        b'{"name":"exact","schema":{"properties":{"z":{"minimum":1.0},"a":{"minimum":1}}},'
        b'"access_rules":{"update":{"z":{"$numberLong":"9007199254740993"},"a":2.0},"read":true}}'
    )
    assert caller.call("POST", path_of(account), raw=raw).status_code == 201
    text = caller.get(path_of(account, "exact")).text
    assert '"properties":{"z":{"minimum":1.0},"a":{"minimum":1}}' in text
    assert '{"update":{"z":{"$numberLong":"9007199254740993"},"a":2.0},"read":true}' in text
    canonical = caller.get(path_of(account, "exact"), Rillbase_EJSON="canonical").text
    assert '"minimum":{"$numberDouble":"1.0"}' in canonical
    assert '"minimum":{"$numberInt":"1"}' in canonical


REFUSED = {
    "a name in capitals": ({"name": "Todos"}, "invalid_body", "/name"),
    "an unknown member": ({"name": "a", "shards": 3}, "invalid_body", "/shards"),
    "an unknown backend": ({"name": "a", "backend": "mongo"}, "invalid_body", "/backend"),
    "an unknown type in the schema": (
        {"name": "a", "schema": {"properties": {"x": {"type": "strin"}}}},
        "invalid_schema",
        "/schema/properties/x/type",
    ),
    "a schema that refers elsewhere": (
        {"name": "a", "schema": {"$ref": "https://example.com"}},
        "unsupported_operator",
        "/schema/$ref",
    ),
    "a schema that is no object": ({"name": "a", "schema": []}, "invalid_body", "/schema"),
    "an unknown rule": (
        {"name": "a", "access_rules": {"list": True}},
        "invalid_body",
        "/access_rules/list",
    ),
    "a rule that is a number": (
        {"name": "a", "access_rules": {"read": 1}},
        "invalid_body",
        "/access_rules/read",
    ),
    "an unknown operator in a rule": (
        {"name": "a", "access_rules": {"read": {"x": {"$foo": 1}}}},
        "unsupported_operator",
        "/access_rules/read/x/$foo",
    ),
    "a rule that ranks": (
        {"name": "a", "access_rules": {"read": {"$and": [{"at": {"$near": [1, 2]}}]}}},
        "invalid_filter",
        "/access_rules/read/$and/0/at/$near",
    ),
    "an index without fields": (
        {"name": "a", "indexes": [{"name": "i", "fields": []}]},
        "invalid_body",
        "/indexes/0/fields",
    ),
    "an index in no direction": (
        {"name": "a", "indexes": [{"name": "i", "fields": [["x", 2]]}]},
        "invalid_body",
        "/indexes/0/fields/0",
    ),
    "an index over an empty name": (
        {"name": "a", "indexes": [{"name": "i", "fields": [["x..y", 1]]}]},
        "invalid_body",
        "/indexes/0/fields/0",
    ),
    "an index over one path twice": (
        {"name": "a", "indexes": [{"name": "i", "fields": [["x", 1], ["x", -1]]}]},
        "invalid_body",
        "/indexes/0/fields",
    ),
    "two indexes of one name": (
        {"name": "a", "indexes": [INDEX, INDEX]},
        "invalid_body",
        "/indexes/1/name",
    ),
    "an unknown member of an index": (
        {"name": "a", "indexes": [{**INDEX, "sparse": True}]},
        "invalid_body",
        "/indexes/0/sparse",
    ),
    "a negative time to live": (
        {"name": "a", "ttl": {"field": "x", "after_s": -1}},
        "invalid_body",
        "/ttl/after_s",
    ),
    "a time to live without a field": (
        {"name": "a", "ttl": {"after_s": 1}},
        "invalid_body",
        "/ttl/field",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_the_error_points_to_the_mistake_and_nothing_is_created(
    caller: Caller, account: TenantAccount, what: str
) -> None:
    body, code, pointer = REFUSED[what]
    errors = problem(caller.post(path_of(account), body), 400, code)["errors"]
    assert [error["pointer"] for error in errors] == [pointer]
    assert caller.get(path_of(account)).json()["items"] == []


def test_a_change_keeps_members_that_it_does_not_name(
    caller: Caller, account: TenantAccount
) -> None:
    first = create(caller, account, access_rules=RULES, indexes=[INDEX])
    answer = caller.patch(path_of(account, "todos"), {"schema": {"type": "object"}})
    assert answer.status_code == 200, answer.text
    assert answer.headers["ETag"] == '"v2"'
    changed = answer.json()
    assert changed["schema"] == {"type": "object"}
    assert changed["access_rules"] == first["access_rules"]
    assert changed["indexes"] == first["indexes"]
    removed = caller.patch(path_of(account, "todos"), {"schema": None, "access_rules": {}}).json()
    assert (removed["schema"], removed["access_rules"]) == (None, {})


def test_a_change_cannot_declare_part_of_an_index(caller: Caller, account: TenantAccount) -> None:
    create(caller, account)
    answer = caller.patch(path_of(account, "todos"), {"indexes": [{"name": "i"}]})
    errors = problem(answer, 400, "invalid_body")["errors"]
    assert [error["pointer"] for error in errors] == ["/indexes/0/fields"]
    problem(caller.patch(path_of(account, "todos"), {"name": "other"}), 400, "invalid_body")


def test_indexes_are_added_and_removed_by_name(caller: Caller, account: TenantAccount) -> None:
    create(caller, account, indexes=[INDEX, {"name": "old", "fields": [["x", 1]]}])
    declared_indexes = [INDEX, {"name": "new", "fields": [["y", 1]], "unique": True}]
    changed = caller.patch(path_of(account, "todos"), {"indexes": declared_indexes}).json()
    assert [(i["name"], i["unique"]) for i in changed["indexes"]] == [
        ("by-rank", False),
        ("new", True),
    ]
    replaced = caller.patch(
        path_of(account, "todos"), {"indexes": [{"name": "new", "fields": [["z", -1]]}]}
    ).json()
    assert [(i["name"], i["fields"]) for i in replaced["indexes"]] == [("new", [["z", -1]])]


def test_a_change_applies_only_to_the_version_that_was_read(
    caller: Caller, account: TenantAccount
) -> None:
    create(caller, account)
    path = path_of(account, "todos")
    assert caller.patch(path, {"ttl": None}, If_Match='"v1"').status_code == 200
    problem(caller.patch(path, {"ttl": None}, If_Match='"v1"'), 412, "precondition_failed")
    problem(caller.delete(path, If_Match='"v1"'), 412, "precondition_failed")
    assert caller.get(path, If_None_Match='"v2"').status_code == 304


def test_a_name_is_unique_and_free_after_the_drop(caller: Caller, account: TenantAccount) -> None:
    first = create(caller, account)
    problem(caller.post(path_of(account), {"name": "todos"}), 409, "name_taken")
    assert caller.delete(path_of(account, "todos")).status_code == 204
    problem(caller.get(path_of(account, "todos")), 404, "not_found")
    problem(caller.delete(path_of(account, "todos")), 404, "not_found")
    assert create(caller, account)["id"] != first["id"]


def test_two_tenants_may_use_one_name(server: str, caller: Caller, account: TenantAccount) -> None:
    create(caller, account)
    other = make_tenant()
    create(with_key(server, other.admin_key), other)


def test_creating_twice_with_one_idempotency_key_creates_one(
    caller: Caller, account: TenantAccount
) -> None:
    first = caller.post(path_of(account), {"name": "once"}, Idempotency_Key="make-it")
    again = caller.post(path_of(account), {"name": "once"}, Idempotency_Key="make-it")
    assert again.status_code == first.status_code == 201
    assert again.json() == first.json()
    assert again.headers["Idempotency-Replayed"] == "true"


def test_the_list_is_paged(caller: Caller, account: TenantAccount) -> None:
    names = [f"c{number}" for number in range(5)]
    for name in names:
        create(caller, account, name=name, indexes=[INDEX])
    seen: list[str] = []
    suffix: str | None = ""
    while suffix is not None:
        listed = caller.get(f"{path_of(account)}?limit=2{suffix}").json()
        seen += [item["name"] for item in listed["items"]]
        assert all(len(item["indexes"]) == 1 for item in listed["items"])
        suffix = listed["next_cursor"] and f"&cursor={listed['next_cursor']}"
    assert seen == names[::-1]


def test_the_quota_limits_the_number_of_collections(caller: Caller, account: TenantAccount) -> None:
    Quota(tenant=account.tenant, limits={"collections": 2}).save(using="staff")
    create(caller, account, name="a")
    create(caller, account, name="b")
    problem(caller.post(path_of(account), {"name": "c"}), 403, "quota_exceeded")
    used = caller.get(f"/api/v1/tenants/{account.slug}/quota").json()["used"]
    assert used["collections"] == 2
    caller.delete(path_of(account, "a"))
    create(caller, account, name="c")


def test_viewers_may_read_and_developers_may_change_collections(
    server: str, caller: Caller, account: TenantAccount
) -> None:
    create(caller, account)
    viewer = signed_in(server, make_member(account.tenant, Role.VIEWER))
    assert viewer.get(path_of(account, "todos")).status_code == 200
    problem(viewer.post(path_of(account), {"name": "b"}), 403, "forbidden")
    problem(viewer.patch(path_of(account, "todos"), {}), 403, "forbidden")
    problem(viewer.delete(path_of(account, "todos")), 403, "forbidden")
    developer = signed_in(server, make_member(account.tenant, Role.DEVELOPER))
    create(developer, account, name="b")
    assert developer.patch(path_of(account, "b"), {"ttl": None}).status_code == 200
    assert developer.delete(path_of(account, "b")).status_code == 204


def test_data_plane_keys_are_rejected(server: str, account: TenantAccount) -> None:
    key = make_key(account.tenant, scopes=["documents:read", "documents:write"])
    problem(with_key(server, key).get(path_of(account)), 403, "forbidden")


def test_each_change_is_in_the_audit_log(caller: Caller, account: TenantAccount) -> None:
    created = create(caller, account)
    caller.patch(path_of(account, "todos"), {"access_rules": RULES})
    caller.delete(path_of(account, "todos"))
    with scoped(tenant_id=account.tenant.id):
        entries = list(AuditEntry.objects.filter(target_type="collection").order_by("id"))
    assert [entry.action for entry in entries] == [
        "collection.created",
        "collection.updated",
        "collection.deleted",
    ]
    assert {entry.target_id for entry in entries} == {created["id"]}
    before, after = entries[1].before, entries[1].after
    assert before is not None
    assert after is not None
    assert (before["access_rules"], after["access_rules"]) == ({}, RULES)


def test_a_changed_schema_applies_to_the_next_write(caller: Caller, account: TenantAccount) -> None:
    create(caller, account)
    documents = "/v1/collections/todos/documents"
    assert caller.post(documents, {"_id": "a"}).status_code == 201
    caller.patch(path_of(account, "todos"), {"schema": {"required": ["title"]}})
    errors = problem(caller.post(documents, {"_id": "b"}), 400, "invalid_document")["errors"]
    assert [error["pointer"] for error in errors] == ["/title"]
    caller.patch(path_of(account, "todos"), {"schema": None})
    assert caller.post(documents, {"_id": "b"}).status_code == 201


def test_a_changed_rule_applies_to_the_next_write_of_an_end_user(
    server: str, caller: Caller, account: TenantAccount
) -> None:
    create(caller, account, access_rules={"create": True})
    key = make_key(account.tenant, kind=ApiKey.Kind.PUBLISHABLE, scopes=["documents:write"])
    anybody = Caller(server, {"Rillbase-Key": key})
    documents = "/v1/collections/todos/documents"
    assert anybody.post(documents, {"_id": "a", "open": True}).status_code == 201
    caller.patch(path_of(account, "todos"), {"access_rules": {"create": {"open": True}}})
    assert anybody.post(documents, {"_id": "b", "open": True}).status_code == 201
    problem(anybody.post(documents, {"_id": "c", "open": False}), 403, "forbidden")
    caller.patch(path_of(account, "todos"), {"access_rules": {}})
    problem(anybody.post(documents, {"_id": "d", "open": True}), 403, "forbidden")
