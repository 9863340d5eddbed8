"""Aggregates in the control plane."""

from __future__ import annotations

import pytest

from foundation.scope import scoped
from tenants.models import AuditEntry, Quota
from tenants.roles import Role
from tests.aggregates.aggregate_client import REQUESTS, Json, aggregates
from tests.caller import Caller, problem, signed_in, with_key
from tests.make import TenantAccount, make_member, make_tenant


@pytest.fixture
def account() -> TenantAccount:
    return make_tenant()


@pytest.fixture
def admin(server: str, account: TenantAccount) -> Caller:
    return with_key(server, account.admin_key)


@pytest.fixture(scope="module")
def lasting() -> TenantAccount:
    """An aggregate for the tests that do not change it."""
    return make_tenant()


def with_changes(**members: object) -> Json:
    return {**REQUESTS, **members}


def measured(**measure: object) -> Json:
    return with_changes(measures={"m": measure})


def test_an_aggregate_is_created_as_described(admin: Caller, account: TenantAccount) -> None:
    answer = admin.post(aggregates(account), REQUESTS)
    assert answer.status_code == 201, answer.text
    assert answer.headers["Location"] == aggregates(account, "requests_5m")
    assert answer.headers["ETag"] == '"v1"'
    body = answer.json()
    assert body["dimensions"] == ["customer", "app", "endpoint"]
    assert body["time"] == {"field": "at", "bucket": "5m"}
    assert list(body["measures"]) == ["count", "total", "latency", "peak"]
    assert body["rollups"] == [["customer"], ["customer", "app"]]
    assert (body["source"], body["retention"], body["error"]) == (None, None, None)
    listed = admin.get(aggregates(account)).json()
    assert [item["name"] for item in listed["items"]] == ["requests_5m"]


def test_measures_are_completed_with_defaults(admin: Caller, account: TenantAccount) -> None:
    given = {
        "sum": {"op": "sum", "field": "n"},
        "money": {"op": "sum", "field": "n", "type": "decimal"},
        "best": {"op": "top", "field": "n"},
        "spread": {"op": "quantiles", "field": "n"},
    }
    answer = admin.post(aggregates(account), {"name": "a", "measures": given}).json()["measures"]
    assert answer["sum"] == {"op": "sum", "field": "n", "type": "double"}
    assert answer["money"] == {"op": "sum", "field": "n", "type": "decimal", "scale": 2}
    assert answer["best"] == {"op": "top", "field": "n", "k": 10}
    assert answer["spread"]["quantiles"] == [0.5, 0.95]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (with_changes(name="Requests"), "/name"),
        ({"name": "a"}, "/measures"),
        (with_changes(measures={}), "/measures"),
        (with_changes(dimensions=["a", "a"]), "/dimensions"),
        (with_changes(dimensions=["$a"]), "/dimensions/0"),
        (with_changes(dimensions=["previous"]), "/dimensions"),
        (with_changes(dimensions=["count"], rollups=[]), "/measures/count"),
        (with_changes(dimensions=["at"], rollups=[]), "/time/field"),
        (with_changes(rollups=[["server"]]), "/rollups/0"),
        (with_changes(rollups=[["customer"], ["customer"]]), "/rollups/1"),
        (with_changes(rollups=[["app", "customer", "endpoint"]]), "/rollups/0"),
        (with_changes(time={"field": "at"}), "/time/bucket"),
        (with_changes(time={"field": "at", "bucket": "5 min"}), "/time/bucket"),
        (with_changes(time=None, retention="90d"), "/retention"),
        (with_changes(retention="1m"), "/retention"),
        (measured(op="median", field="n"), "/measures/m/op"),
        (measured(field="n"), "/measures/m/op"),
        (measured(op="sum"), "/measures/m/field"),
        (measured(op="sum", field="n", scale=2), "/measures/m/scale"),
        (measured(op="sum", field="n", type="decimal", scale=40), "/measures/m/scale"),
        (measured(op="count", field="n"), "/measures/m/field"),
        (measured(op="quantiles", field="n", quantiles=[2]), "/measures/m/quantiles/0"),
        (measured(op="top", field="n", k=0), "/measures/m/k"),
        (with_changes(source={"collection": "nowhere"}), "/source/collection"),
        (with_changes(surprise=1), "/surprise"),
    ],
)
def test_the_error_names_an_invalid_aggregate_setting(
    server: str, lasting: TenantAccount, body: object, pointer: str
) -> None:
    admin = with_key(server, lasting.admin_key)
    details = problem(admin.post(aggregates(lasting), body), 400, "invalid_body")
    assert [error["pointer"] for error in details["errors"]] == [pointer]


def test_a_view_is_over_a_collection_and_a_filter(admin: Caller, account: TenantAccount) -> None:
    admin.post(f"/api/v1/tenants/{account.slug}/collections", {"name": "orders"})
    followed_source = {"collection": "orders", "filter": {"paid": True, "at": {"$gt": 3}}}
    answer = admin.post(aggregates(account), with_changes(source=followed_source))
    assert answer.status_code == 201, answer.text
    assert answer.json()["source"]["collection"] == "orders"
    assert answer.json()["state"] == "building"
    wrong = with_changes(name="b", source={"collection": "orders", "filter": {"a": {"$near": 1}}})
    details = problem(admin.post(aggregates(account), wrong), 400, "invalid_geometry")
    assert details["errors"][0]["pointer"].startswith("/source/filter/a")


def test_a_name_is_taken_once(admin: Caller, account: TenantAccount) -> None:
    admin.post(aggregates(account), REQUESTS)
    problem(admin.post(aggregates(account), REQUESTS), 409, "name_taken")


def test_an_aggregate_is_changed_only_at_the_version_that_was_read(
    admin: Caller, account: TenantAccount
) -> None:
    admin.post(aggregates(account), REQUESTS)
    path = aggregates(account, "requests_5m")
    details = admin.patch(path, {"retention": "90d"}, If_Match='"v1"').json()
    assert (details["retention"], details["version"]) == ("90d", 2)
    assert details["dimensions"] == REQUESTS["dimensions"]
    refusal = admin.patch(path, {"retention": "10d"}, If_Match='"v1"')
    problem(refusal, 412, "precondition_failed")
    details = problem(admin.patch(path, {"dimensions": ["server"]}), 400, "invalid_body")
    assert details["errors"][0]["pointer"] == "/rollups/0"
    problem(admin.patch(path, {"source": {"collection": "b"}}), 400, "invalid_body")


def test_a_dropped_aggregate_no_longer_exists_and_its_name_can_be_reused(
    admin: Caller, account: TenantAccount
) -> None:
    first = admin.post(aggregates(account), REQUESTS).json()
    path = aggregates(account, "requests_5m")
    assert admin.delete(path).status_code == 204
    problem(admin.get(path), 404, "not_found")
    assert admin.post(aggregates(account), REQUESTS).json()["id"] != first["id"]


def test_changes_are_in_the_audit_log(admin: Caller, account: TenantAccount) -> None:
    path = aggregates(account, "requests_5m")
    admin.post(aggregates(account), REQUESTS)
    admin.patch(path, {"retention": "60d"})
    assert admin.post(f"{path}:rebuild").status_code == 202
    admin.delete(path)
    with scoped(tenant_id=account.tenant.id):
        entries = AuditEntry.objects.filter(target_type="aggregate").order_by("pk")
        assert [entry.action for entry in entries] == [
            "aggregate.created",
            "aggregate.updated",
            "aggregate.rebuilt",
            "aggregate.deleted",
        ]


def test_a_repeated_call_creates_one_aggregate(admin: Caller, account: TenantAccount) -> None:
    first = admin.post(aggregates(account), REQUESTS, Idempotency_Key="once")
    again = admin.post(aggregates(account), REQUESTS, Idempotency_Key="once")
    assert again.json() == first.json()
    assert again.headers["Idempotency-Replayed"] == "true"


def test_the_quota_bounds_aggregates(admin: Caller, account: TenantAccount) -> None:
    with scoped(tenant_id=account.tenant.id):
        Quota.objects.using("staff").create(tenant=account.tenant, limits={"aggregates": 1})
    assert admin.post(aggregates(account), REQUESTS).status_code == 201
    problem(admin.post(aggregates(account), with_changes(name="two")), 403, "quota_exceeded")


def test_viewers_see_aggregates_and_change_none(
    server: str, admin: Caller, account: TenantAccount
) -> None:
    admin.post(aggregates(account), REQUESTS)
    path = aggregates(account, "requests_5m")
    viewer = signed_in(server, make_member(account.tenant, Role.VIEWER))
    assert viewer.get(path).status_code == 200
    problem(viewer.post(aggregates(account), with_changes(name="b")), 403, "forbidden")
    problem(viewer.post(f"{path}:rebuild"), 403, "forbidden")
    problem(viewer.delete(path), 403, "forbidden")


def test_another_tenants_aggregates_do_not_exist(
    server: str, admin: Caller, account: TenantAccount
) -> None:
    admin.post(aggregates(account), REQUESTS)
    other = make_tenant()
    stranger = with_key(server, other.admin_key)
    problem(stranger.get(aggregates(other, "requests_5m")), 404, "not_found")
    assert stranger.get(aggregates(account, "requests_5m")).status_code in (403, 404)
