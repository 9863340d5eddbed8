"""Collections in the storage node: their life cycle, and what they cannot do yet."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from documents.collections import backfill, expiry, node_upkeep, removal, storage_usage
from documents.collections.document_counts import count_documents
from documents.collections.node_upkeep import sizes_of
from documents.models import Collection, Index
from foundation.errors import Unavailable
from foundation.scope import scoped
from tests.caller import Caller, problem
from tests.documents.collections import stored_documents
from tests.make import TenantAccount
from tests.waiting import wait_until

BY_RANK = {"name": "by-rank", "fields": [["rank", 1]]}
BY_EMAIL = {"name": "by-email", "fields": [["email", 1]], "unique": True}


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backfill, "BATCH_DOCUMENTS", 20)


def path_of(account: TenantAccount, name: str = "") -> str:
    return f"/api/v1/tenants/{account.slug}/collections" + (f"/{name}" if name else "")


def create(caller: Caller, account: TenantAccount, **fields: object) -> dict[str, Any]:
    answer = caller.post(path_of(account), {"name": "things", "backend": "native", **fields})
    assert answer.status_code == 201, answer.text
    body: dict[str, Any] = answer.json()
    return body


def put(account: TenantAccount, *documents: object) -> None:
    stored_documents.put(account.tenant.id, "things", documents)


def query(caller: Caller, filter: object) -> list[Any]:  # noqa: A002
    answer = caller.post("/v1/collections/things/query", {"filter": filter, "limit": 1_000})
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["items"]]


def plan(caller: Caller, filter: object) -> dict[str, Any]:  # noqa: A002
    answer = caller.post("/v1/collections/things/explain", {"filter": filter})
    shown: dict[str, Any] = answer.json()["plan"]
    return shown


def index_of(account: TenantAccount, name: str) -> Index:
    return Index.unscoped.using("relay").get(tenant=account.tenant, name=name)


def build(account: TenantAccount, index: Index) -> Index:
    backfill.backfill(tenant=str(account.tenant.id), index=index.number)
    return index_of(account, index.name)


def test_documents_of_a_native_collection_are_in_the_node(
    caller: Caller, account: TenantAccount
) -> None:
    created = create(caller, account, indexes=[BY_RANK])
    assert created["backend"] == "native"
    assert created["indexes"][0]["state"] == "ready"
    put(account, *({"_id": n, "rank": n % 5} for n in range(20)))
    assert query(caller, {"rank": 3}) == [3, 8, 13, 18]
    assert plan(caller, {"rank": 3})["index"] == "by-rank"
    in_postgres = stored_documents.rows(
        "SELECT count(*) FROM documents_document WHERE tenant_id = %s", account.tenant.id
    )
    assert in_postgres == [(0,)]


def test_a_changed_schema_applies_to_the_next_write(caller: Caller, account: TenantAccount) -> None:
    create(caller, account)
    put(account, {"_id": "a", "n": "text"})
    path = path_of(account, "things")
    assert caller.patch(path, {"schema": {"properties": {"n": {"type": "number"}}}}).ok
    answer = caller.post("/v1/collections/things/documents", {"n": "text"})
    problem(answer, 400, "invalid_document")


def test_an_index_is_built_while_documents_are_written(
    caller: Caller, account: TenantAccount
) -> None:
    create(caller, account)
    put(account, *({"_id": n, "rank": n} for n in range(50)))
    shown = caller.patch(path_of(account, "things"), {"indexes": [BY_RANK]}).json()
    assert shown["indexes"][0]["state"] == "building"
    index = index_of(account, "by-rank")
    assert backfill.step(account.tenant.id, index.number)
    assert plan(caller, {"rank": 7})["index"] is None, "it is not used before it is complete"
    caller.delete('/v1/collections/things/documents/~{"$numberInt":"7"}')
    put(account, {"_id": "new", "rank": 7})
    built = build(account, index)
    assert (built.state, built.documents_done) == ("ready", 51)
    assert plan(caller, {"rank": 7})["index"] == "by-rank"
    assert query(caller, {"rank": 7}) == ["new"]
    assert query(caller, {"rank": {"$gte": 45}}) == [45, 46, 47, 48, 49]


def test_a_unique_index_that_documents_violate_fails_and_names_them(
    caller: Caller, account: TenantAccount
) -> None:
    create(caller, account)
    put(account, *({"_id": n, "email": f"{n % 45}@example.com"} for n in range(50)))
    caller.patch(path_of(account, "things"), {"indexes": [BY_EMAIL]})
    built = build(account, index_of(account, "by-email"))
    assert (built.state, built.error) == ("failed", "Documents 0 and 45 have the same key.")
    put(account, {"email": "0@example.com"})


def test_a_document_that_cannot_be_indexed_is_named_in_the_index_error(
    caller: Caller, account: TenantAccount
) -> None:
    create(caller, account)
    put(account, {"_id": "long", "email": "x" * 2_000})
    caller.patch(path_of(account, "things"), {"indexes": [BY_EMAIL]})
    built = build(account, index_of(account, "by-email"))
    assert built.state == "failed"
    assert built.error.startswith('Document "long": ')


def test_a_dropped_collection_leaves_nothing_in_the_node(
    caller: Caller, account: TenantAccount
) -> None:
    identity = Collection.unscoped.using("relay").get(pk=create(caller, account)["id"]).pk
    put(account, {"_id": "a"})
    assert sizes_of(account.tenant.id, [identity])[identity].documents == 1
    assert caller.delete(path_of(account, "things")).status_code == 204
    assert sizes_of(account.tenant.id, [identity])[identity].documents == 0
    problem(caller.post("/v1/collections/things/query", {}), 404, "not_found")
    removal.drop(collection=str(identity))
    assert not Collection.unscoped.using("relay").filter(pk=identity).exists()
    create(caller, account)
    assert query(caller, {}) == []


def test_its_documents_are_counted_and_measured(caller: Caller, account: TenantAccount) -> None:
    create(caller, account)
    put(account, *({"_id": n, "text": "x" * 1_000} for n in range(10)))
    caller.delete('/v1/collections/things/documents/~{"$numberInt":"3"}')
    with scoped(tenant_id=account.tenant.id):
        (count,) = count_documents(10)
    assert (count.name, count.documents, count.is_estimate) == ("things", 9, False)
    storage_usage.sweep()
    items = caller.get(f"/api/v1/tenants/{account.slug}/usage").json()["items"]
    measured = {item["metric"]: item["amount"] for item in items}
    assert measured["document_hours"] == 9
    assert 9 * 1_000 < measured["storage_byte_hours"] < 9 * 1_100


def _transaction(caller: Caller) -> Any:
    operations = [
        {"insert": {"_id": "b"}, "collection": name} for name in ("things", "in-postgres")
    ]
    return caller.post("/v1/transactions", {"operations": operations})


def _lookup(caller: Caller) -> Any:
    lookup = [{"from": "in-postgres", "local": "other", "as": "others"}]
    return caller.post("/v1/collections/things/query", {"lookup": lookup})


@pytest.mark.parametrize("call", [_transaction, _lookup])
def test_backends_are_not_mixed_in_one_call(
    caller: Caller, account: TenantAccount, call: Callable[[Caller], Any]
) -> None:
    create(caller, account)
    create(caller, account, name="in-postgres", backend="postgres")
    put(account, {"_id": "a", "other": "x"})
    problem(call(caller), 400, "mixed_backends")
    assert query(caller, {}) == ["a"]


def test_an_installation_without_a_storage_node_rejects_it(
    caller: Caller, account: TenantAccount, settings_environment: pytest.MonkeyPatch
) -> None:
    settings_environment.setenv("STORAGE_URL", "")
    answer = caller.post(path_of(account), {"name": "things", "backend": "native"})
    error = problem(answer, 400, "invalid_body")["errors"][0]
    assert (error["pointer"], error["code"]) == ("/backend", "not_available")


def test_a_definition_that_was_not_installed_is_installed_by_a_later_call(
    caller: Caller, account: TenantAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(caller, account)
    put(account, {"_id": "a", "n": "text"})
    schema = {"properties": {"n": {"type": "number"}}}

    async def unavailable(*_: object) -> None:
        raise Unavailable("The storage node does not respond. Retry.")

    with monkeypatch.context() as interrupted:
        interrupted.setattr(node_upkeep, "install_current", unavailable)
        answer = caller.patch(path_of(account, "things"), {"schema": schema})
        problem(answer, 503, "unavailable")
    assert caller.get(path_of(account, "things")).json()["schema"] == schema

    def is_rejected() -> bool:
        answer = caller.post("/v1/collections/things/documents", {"n": "text"})
        return answer.status_code == 400

    wait_until(is_rejected, what="servers to read the definition again")


def test_work_in_the_background_continues_while_the_node_is_unavailable(
    caller: Caller, account: TenantAccount, settings_environment: pytest.MonkeyPatch
) -> None:
    ttl = {"field": "at", "after_s": 0}
    expired = {"_id": "a", "at": {"$date": "2001-01-01T00:00:00Z"}}
    for name, backend in (("things", "native"), ("in-postgres", "postgres")):
        create(caller, account, name=name, backend=backend, ttl=ttl)
        stored_documents.put(account.tenant.id, name, [expired])
    url = os.environ["STORAGE_URL"]
    settings_environment.setenv("STORAGE_URL", "redis://admin:token@127.0.0.1:1")
    expiry.sweep()
    storage_usage.sweep()
    with scoped(tenant_id=account.tenant.id):
        counts = count_documents(10)
    settings_environment.setenv("STORAGE_URL", url)
    assert [(count.name, count.documents) for count in counts] == [("in-postgres", 0)]
    assert query(caller, {}) == ["a"]
    expiry.sweep()
    assert query(caller, {}) == []


@pytest.mark.parametrize("backends", [("postgres", "native"), ("native", "postgres")])
def test_a_collection_may_be_replaced_by_one_of_the_other_backend(
    caller: Caller, account: TenantAccount, backends: tuple[str, str]
) -> None:
    for number, backend in enumerate(backends):
        identity = create(caller, account, backend=backend)["id"]
        # Servers have the definition of the collection before for a second.
        answer = caller.post("/v1/collections/things/documents", {"_id": number})
        assert answer.status_code in (201, 503), answer.text
        expected = int(answer.status_code == 201)
        wait_until(
            lambda expected=expected: _is_counted(caller, expected),  # type: ignore[misc]
            what="servers to read the definition again",
        )
        answer = caller.post("/v1/collections/things/documents", {"_id": "last"})
        assert answer.status_code == 201, answer.text
        assert query(caller, {"_id": "last"}) == ["last"]
        in_postgres = stored_documents.rows(
            "SELECT count(*) FROM documents_document WHERE collection_id = %s", identity
        )
        assert in_postgres[0][0] == (0 if backend == "native" else len(query(caller, {})))
        assert caller.delete(path_of(account, "things")).status_code == 204


def _is_counted(caller: Caller, expected: int) -> bool:
    answer = caller.post("/v1/collections/things/count", {})
    assert answer.status_code in (503, 404) or answer.json()["count"] == expected, answer.text
    return answer.status_code == 200


@pytest.mark.parametrize("backend", ["postgres", "native"])
def test_a_collection_of_the_same_name_is_written_and_imported_at_once(
    caller: Caller, account: TenantAccount, backend: str
) -> None:
    others = {"postgres": "native", "native": "postgres"}
    for current in (others[backend], backend, backend):
        create(caller, account, backend=current)
        # The servers cache the definition.
        assert caller.post("/v1/collections/things/documents", {"_id": 1}).status_code == 201
        lines = "".join(f'{{"_id":{n}}}\n' for n in range(2, 5))
        imported = caller.call(
            "POST",
            "/v1/collections/things/import",
            raw=lines.encode(),
            Content_Type="application/x-ndjson",
        )
        assert imported.status_code == 200, imported.text
        listed = caller.get("/v1/collections/things/imports").json()["items"]
        assert [job["id"] for job in listed] == [imported.json()["id"]]
        assert query(caller, {}) == [1, 2, 3, 4]
        path = path_of(account, "things")
        assert caller.delete(path).status_code == 204
        removal.drop(collection=str(Collection.unscoped.using("relay").latest("created_at").pk))
