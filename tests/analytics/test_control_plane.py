"""Datasets in the control plane."""

from __future__ import annotations

import pytest

from foundation.scope import scoped
from tenants.models import AuditEntry, Quota
from tenants.roles import Role
from tests.analytics.dataset_client import SHOP, Json, datasets
from tests.caller import Caller, problem, signed_in, with_key
from tests.make import TenantAccount, make_member, make_tenant

POST: Json = {"columns": {"id": "int64", "by": "string"}, "key": ["id"], "views": {}}


@pytest.fixture
def account() -> TenantAccount:
    return make_tenant()


@pytest.fixture
def admin(server: str, account: TenantAccount) -> Caller:
    return with_key(server, account.admin_key)


@pytest.fixture(scope="module")
def lasting() -> TenantAccount:
    """A dataset for the tests that do not change it."""
    return make_tenant()


def with_table(name: str = "posts", **members: object) -> Json:
    return {"name": "a", "tables": {name: {**POST, **members}}}


def test_a_dataset_is_created_as_described(admin: Caller, account: TenantAccount) -> None:
    answer = admin.post(datasets(account), SHOP)
    assert answer.status_code == 201, answer.text
    assert answer.headers["Location"] == datasets(account, "shop")
    body = answer.json()
    orders = body["tables"]["orders"]
    assert list(orders["columns"]) == list(SHOP["tables"]["orders"]["columns"])
    assert orders["key"] == ["id"]
    assert orders["views"]["by_customer"]["key"] == ["customer", "id"]
    assert orders["views"]["by_customer"]["columns"] == list(orders["columns"])
    assert (body["state"], body["stored_bytes"], body["retention_s"]) == (0, 0, 600)
    assert admin.get("/v1/datasets/shop").json() == body
    assert [item["name"] for item in admin.get(datasets(account)).json()["items"]] == ["shop"]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"name": "a"}, "/tables"),
        ({"name": "a", "tables": {}}, "/tables"),
        ({"name": "A", "tables": {"t": POST}}, "/name"),
        (with_table("op"), "/tables/op"),
        (with_table("null"), "/tables/null"),
        (with_table(columns={}), "/tables/posts/columns"),
        (with_table(columns={"id": "text"}), "/tables/posts/columns/id"),
        (with_table(columns={"id": "int64", "Id": "string"}), "/tables/posts/columns"),
        (with_table(key=[]), "/tables/posts/key"),
        (with_table(key=["id", "id"]), "/tables/posts/key"),
        (with_table(key=["no"]), "/tables/posts/key"),
        (with_table(columns={"id": "double"}), "/tables/posts/key"),
        (with_table(views={"v": {"key": ["by"]}}), "/tables/posts/views/v/key"),
        (
            with_table(views={"v": {"key": ["by", "id"], "columns": ["id"]}}),
            "/tables/posts/views/v/columns",
        ),
        (
            with_table(views={"v": {"key": ["id"], "columns": ["id", "no"]}}),
            "/tables/posts/views/v/columns",
        ),
        (with_table(columns={f"c{n}": "int64" for n in range(62)} | {"id": "int64"}),
         "/tables/posts/columns"),
        ({**with_table(), "retention_s": 0}, "/retention_s"),
        ({**with_table(), "surprise": 1}, "/surprise"),
    ],
)  # fmt: skip
def test_the_error_names_an_invalid_dataset_setting(
    server: str, lasting: TenantAccount, body: object, pointer: str
) -> None:
    admin = with_key(server, lasting.admin_key)
    details = problem(admin.post(datasets(lasting), body), 400, "invalid_body")
    assert [error["pointer"] for error in details["errors"]] == [pointer]


def test_tables_and_columns_can_be_added_but_not_removed(
    admin: Caller, account: TenantAccount
) -> None:
    admin.post(datasets(account), with_table())
    path = datasets(account, "a")
    wider: Json = {**POST, "columns": {**POST["columns"], "text": "string"}}
    answer = admin.patch(path, {"tables": {"posts": wider, "more": POST}}).json()
    assert list(answer["tables"]["posts"]["columns"]) == ["id", "by", "text"]
    assert answer["version"] == 2
    for tables, pointer in (
        ({"posts": wider}, "/tables/more"),
        ({"posts": POST, "more": POST}, "/tables/posts/columns"),
        ({"posts": {**wider, "key": ["id", "by"]}, "more": POST}, "/tables/posts/key"),
        (
            {"posts": {**wider, "views": {"v": {"key": ["id"]}}}, "more": POST},
            "/tables/posts/views",
        ),
    ):
        refusal = problem(admin.patch(path, {"tables": tables}), 400, "invalid_body")
        assert [error["pointer"] for error in refusal["errors"]] == [pointer]
    assert admin.patch(path, {"retention_s": 60}).json()["retention_s"] == 60


def test_a_name_is_taken_once(admin: Caller, account: TenantAccount) -> None:
    admin.post(datasets(account), with_table())
    problem(admin.post(datasets(account), with_table()), 409, "name_taken")


def test_a_dropped_dataset_no_longer_exists_and_its_name_can_be_reused(
    admin: Caller, account: TenantAccount
) -> None:
    first = admin.post(datasets(account), with_table()).json()
    assert admin.delete(datasets(account, "a")).status_code == 204
    problem(admin.get(datasets(account, "a")), 404, "not_found")
    problem(admin.get("/v1/datasets/a"), 404, "not_found")
    assert admin.post(datasets(account), with_table()).json()["id"] != first["id"]


def test_changes_are_in_the_audit_log(admin: Caller, account: TenantAccount) -> None:
    path = datasets(account, "a")
    admin.post(datasets(account), with_table())
    admin.patch(path, {"retention_s": 60})
    admin.delete(path)
    with scoped(tenant_id=account.tenant.id):
        entries = AuditEntry.objects.filter(target_type="dataset").order_by("pk")
        assert [entry.action for entry in entries] == [
            "dataset.created",
            "dataset.updated",
            "dataset.deleted",
        ]


def test_the_quota_bounds_datasets(admin: Caller, account: TenantAccount) -> None:
    with scoped(tenant_id=account.tenant.id):
        Quota.objects.using("staff").create(tenant=account.tenant, limits={"datasets": 1})
    assert admin.post(datasets(account), with_table()).status_code == 201
    other = {**with_table(), "name": "b"}
    problem(admin.post(datasets(account), other), 403, "quota_exceeded")


def test_viewers_see_datasets_and_change_none(
    server: str, admin: Caller, account: TenantAccount
) -> None:
    admin.post(datasets(account), with_table())
    viewer = signed_in(server, make_member(account.tenant, Role.VIEWER))
    assert viewer.get(datasets(account, "a")).status_code == 200
    problem(viewer.patch(datasets(account, "a"), {"retention_s": 60}), 403, "forbidden")
    problem(viewer.delete(datasets(account, "a")), 403, "forbidden")


def test_what_a_dropped_dataset_leaves_is_removed(server: str) -> None:
    from analytics.definitions.removal import remove
    from tests.analytics.dataset_client import files_of, make_dataset

    shop = make_dataset(server)
    shop.insert("orders", {"id": 1})
    remove(dataset=str(shop.id))
    assert len(shop.rows("orders")) == 1, "a dataset that is there keeps its files"
    shop.caller.delete(shop.control_path)
    remove(dataset=str(shop.id))
    assert not files_of(shop.id).exists()


def test_a_tenants_datasets_go_with_the_tenant(server: str) -> None:
    from tenants import purge
    from tenants.request_log import recorder
    from tests.analytics.dataset_client import files_of, make_dataset

    shop = make_dataset(server)
    shop.insert("orders", {"id": 1})
    # The requests of this test are recorded before its tenant is removed, and not meanwhile.
    recorder.flush()
    purge.purge(shop.account.tenant.id)
    assert purge.find_traces(shop.account.tenant.id) == []
    assert not files_of(shop.id).exists()
