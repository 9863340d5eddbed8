"""Aggregates in the control plane."""

from __future__ import annotations

import pytest

from foundation.scope import scoped
from tenants.models import AuditEntry, Quota
from tenants.roles import Role
from tests.aggregates.made import REQUESTS, Json, aggregates
from tests.caller import Caller, problem, signed_in, with_key
from tests.make import MadeTenant, make_member, make_tenant


@pytest.fixture
def made() -> MadeTenant:
    return make_tenant()


@pytest.fixture
def admin(server: str, made: MadeTenant) -> Caller:
    return with_key(server, made.admin_key)


@pytest.fixture(scope="module")
def lasting() -> MadeTenant:
    """One for the tests that leave nothing behind."""
    return make_tenant()


def changed(**members: object) -> Json:
    return {**REQUESTS, **members}


def measured(**measure: object) -> Json:
    return changed(measures={"m": measure})


def test_an_aggregate_is_created_as_described(admin: Caller, made: MadeTenant) -> None:
    answer = admin.post(aggregates(made), REQUESTS)
    assert answer.status_code == 201, answer.text
    assert answer.headers["Location"] == aggregates(made, "requests_5m")
    assert answer.headers["ETag"] == '"v1"'
    body = answer.json()
    assert body["dimensions"] == ["customer", "app", "endpoint"]
    assert body["time"] == {"field": "at", "bucket": "5m"}
    assert list(body["measures"]) == ["count", "total", "latency", "peak"]
    assert body["rollups"] == [["customer"], ["customer", "app"]]
    assert (body["source"], body["retention"], body["error"]) == (None, None, None)
    listed = admin.get(aggregates(made)).json()
    assert [item["name"] for item in listed["items"]] == ["requests_5m"]


def test_measures_are_completed_with_defaults(admin: Caller, made: MadeTenant) -> None:
    given = {
        "sum": {"op": "sum", "field": "n"},
        "money": {"op": "sum", "field": "n", "type": "decimal"},
        "best": {"op": "top", "field": "n"},
        "spread": {"op": "quantiles", "field": "n"},
    }
    answer = admin.post(aggregates(made), {"name": "a", "measures": given}).json()["measures"]
    assert answer["sum"] == {"op": "sum", "field": "n", "type": "double"}
    assert answer["money"] == {"op": "sum", "field": "n", "type": "decimal", "scale": 2}
    assert answer["best"] == {"op": "top", "field": "n", "k": 10}
    assert answer["spread"]["quantiles"] == [0.5, 0.95]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        (changed(name="Requests"), "/name"),
        ({"name": "a"}, "/measures"),
        (changed(measures={}), "/measures"),
        (changed(dimensions=["a", "a"]), "/dimensions"),
        (changed(dimensions=["$a"]), "/dimensions/0"),
        (changed(dimensions=["previous"]), "/dimensions"),
        (changed(dimensions=["count"], rollups=[]), "/measures/count"),
        (changed(dimensions=["at"], rollups=[]), "/time/field"),
        (changed(rollups=[["server"]]), "/rollups/0"),
        (changed(rollups=[["customer"], ["customer"]]), "/rollups/1"),
        (changed(rollups=[["app", "customer", "endpoint"]]), "/rollups/0"),
        (changed(time={"field": "at"}), "/time/bucket"),
        (changed(time={"field": "at", "bucket": "5 min"}), "/time/bucket"),
        (changed(time=None, retention="90d"), "/retention"),
        (changed(retention="1m"), "/retention"),
        (measured(op="median", field="n"), "/measures/m/op"),
        (measured(field="n"), "/measures/m/op"),
        (measured(op="sum"), "/measures/m/field"),
        (measured(op="sum", field="n", scale=2), "/measures/m/scale"),
        (measured(op="sum", field="n", type="decimal", scale=40), "/measures/m/scale"),
        (measured(op="count", field="n"), "/measures/m/field"),
        (measured(op="quantiles", field="n", quantiles=[2]), "/measures/m/quantiles/0"),
        (measured(op="top", field="n", k=0), "/measures/m/k"),
        (changed(source={"collection": "nowhere"}), "/source/collection"),
        (changed(surprise=1), "/surprise"),
    ],
)
def test_the_error_names_an_invalid_aggregate_setting(
    server: str, lasting: MadeTenant, body: object, pointer: str
) -> None:
    admin = with_key(server, lasting.admin_key)
    details = problem(admin.post(aggregates(lasting), body), 400, "invalid_body")
    assert [error["pointer"] for error in details["errors"]] == [pointer]


def test_a_view_is_over_a_collection_and_a_filter(admin: Caller, made: MadeTenant) -> None:
    admin.post(f"/api/v1/tenants/{made.slug}/collections", {"name": "orders"})
    wanted = {"collection": "orders", "filter": {"paid": True, "at": {"$gt": 3}}}
    answer = admin.post(aggregates(made), changed(source=wanted))
    assert answer.status_code == 201, answer.text
    assert answer.json()["source"]["collection"] == "orders"
    assert answer.json()["state"] == "building"
    wrong = changed(name="b", source={"collection": "orders", "filter": {"a": {"$near": 1}}})
    details = problem(admin.post(aggregates(made), wrong), 400, "invalid_geometry")
    assert details["errors"][0]["pointer"].startswith("/source/filter/a")


def test_a_name_is_taken_once(admin: Caller, made: MadeTenant) -> None:
    admin.post(aggregates(made), REQUESTS)
    problem(admin.post(aggregates(made), REQUESTS), 409, "name_taken")


def test_an_aggregate_is_changed_only_at_the_version_that_was_read(
    admin: Caller, made: MadeTenant
) -> None:
    admin.post(aggregates(made), REQUESTS)
    one = aggregates(made, "requests_5m")
    details = admin.patch(one, {"retention": "90d"}, If_Match='"v1"').json()
    assert (details["retention"], details["version"]) == ("90d", 2)
    assert details["dimensions"] == REQUESTS["dimensions"]
    refused = admin.patch(one, {"retention": "10d"}, If_Match='"v1"')
    problem(refused, 412, "precondition_failed")
    details = problem(admin.patch(one, {"dimensions": ["server"]}), 400, "invalid_body")
    assert details["errors"][0]["pointer"] == "/rollups/0"
    problem(admin.patch(one, {"source": {"collection": "b"}}), 400, "invalid_body")


def test_a_dropped_aggregate_is_gone_and_its_name_free(admin: Caller, made: MadeTenant) -> None:
    first = admin.post(aggregates(made), REQUESTS).json()
    one = aggregates(made, "requests_5m")
    assert admin.delete(one).status_code == 204
    problem(admin.get(one), 404, "not_found")
    assert admin.post(aggregates(made), REQUESTS).json()["id"] != first["id"]


def test_changes_are_in_the_audit_log(admin: Caller, made: MadeTenant) -> None:
    one = aggregates(made, "requests_5m")
    admin.post(aggregates(made), REQUESTS)
    admin.patch(one, {"retention": "60d"})
    assert admin.post(f"{one}:rebuild").status_code == 202
    admin.delete(one)
    with scoped(tenant_id=made.tenant.id):
        found = AuditEntry.objects.filter(target_type="aggregate").order_by("pk")
        assert [entry.action for entry in found] == [
            "aggregate.created",
            "aggregate.updated",
            "aggregate.rebuilt",
            "aggregate.deleted",
        ]


def test_a_repeated_call_makes_one_aggregate(admin: Caller, made: MadeTenant) -> None:
    first = admin.post(aggregates(made), REQUESTS, Idempotency_Key="once")
    again = admin.post(aggregates(made), REQUESTS, Idempotency_Key="once")
    assert again.json() == first.json()
    assert again.headers["Idempotency-Replayed"] == "true"


def test_the_quota_bounds_aggregates(admin: Caller, made: MadeTenant) -> None:
    with scoped(tenant_id=made.tenant.id):
        Quota.objects.using("staff").create(tenant=made.tenant, limits={"aggregates": 1})
    assert admin.post(aggregates(made), REQUESTS).status_code == 201
    problem(admin.post(aggregates(made), changed(name="two")), 403, "quota_exceeded")


def test_viewers_see_aggregates_and_change_none(
    server: str, admin: Caller, made: MadeTenant
) -> None:
    admin.post(aggregates(made), REQUESTS)
    one = aggregates(made, "requests_5m")
    viewer = signed_in(server, make_member(made.tenant, Role.VIEWER))
    assert viewer.get(one).status_code == 200
    problem(viewer.post(aggregates(made), changed(name="b")), 403, "forbidden")
    problem(viewer.post(f"{one}:rebuild"), 403, "forbidden")
    problem(viewer.delete(one), 403, "forbidden")


def test_another_tenants_aggregates_do_not_exist(
    server: str, admin: Caller, made: MadeTenant
) -> None:
    admin.post(aggregates(made), REQUESTS)
    other = make_tenant()
    stranger = with_key(server, other.admin_key)
    problem(stranger.get(aggregates(other, "requests_5m")), 404, "not_found")
    assert stranger.get(aggregates(made, "requests_5m")).status_code in (403, 404)
