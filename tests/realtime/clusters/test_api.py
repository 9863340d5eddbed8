"""`…/cluster` in the control plane."""

from __future__ import annotations

from typing import Any

import pytest

from foundation.scope import scoped
from realtime.grid.size import GridSize
from realtime.models import Cluster
from tenants.models import AuditEntry, Quota
from tenants.roles import Role
from tests.caller import Caller, problem, signed_in, with_key
from tests.make import TenantAccount, make_member, make_tenant
from tests.realtime.fake_grid import fake_grid


@pytest.fixture
def account() -> TenantAccount:
    return make_tenant(plan="dedicated")


@pytest.fixture
def admin(server: str, account: TenantAccount) -> Caller:
    return with_key(server, account.admin_key)


def path(account: TenantAccount) -> str:
    return f"/api/v1/tenants/{account.slug}/cluster"


def create(caller: Caller, account: TenantAccount, **members: object) -> dict[str, Any]:
    answer = caller.post(path(account), members)
    assert answer.status_code == 202, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_a_tenant_without_a_cluster_sees_the_shared_grid(
    admin: Caller, account: TenantAccount
) -> None:
    body = admin.get(path(account)).json()
    assert (body["launcher"], body["state"]) == ("shared", "shared")
    assert (body["write_partitions"], body["version"]) == (None, None)
    assert [grid["epoch"] for grid in body["grids"]] == [1]


def test_a_cluster_is_requested_with_defaults(admin: Caller, account: TenantAccount) -> None:
    answer = admin.post(path(account))
    assert answer.status_code == 202, answer.text
    assert answer.headers["Location"] == path(account)
    assert answer.headers["ETag"] == '"v1"'
    body = answer.json()
    assert body == {**admin.get(path(account)).json()}
    assert (body["launcher"], body["state"]) == ("kubernetes", "pending")
    assert (body["write_partitions"], body["node_size"]) == (2, "small")
    assert (body["tier"], body["image"], body["idle_after_s"]) == ("burstable", None, 1800)


def test_a_cluster_is_changed_only_at_the_version_that_was_read(
    admin: Caller, account: TenantAccount
) -> None:
    create(admin, account, write_partitions=1)
    problem(
        admin.patch(path(account), {"write_partitions": 3}, If_Match='"v7"'),
        412,
        "precondition_failed",
    )
    changes = {"write_partitions": 3, "image": "next", "idle_after_s": None}
    answer = admin.patch(path(account), changes, If_Match='"v1"')
    assert answer.status_code == 202, answer.text
    body = answer.json()
    assert (body["write_partitions"], body["image"], body["idle_after_s"]) == (3, "next", None)
    # What was not named stays.
    assert (body["node_size"], body["query_partitions"], body["version"]) == ("small", 1, 2)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("write_partitions", 0),
        ("write_partitions", 65),
        ("query_partitions", 0),
        ("node_size", "gigantic"),
        ("tier", "best"),
        ("image", "evil.example.com/mine:latest"),
        ("idle_after_s", 5),
        ("replicas", 2),
    ],
)
def test_the_error_points_to_an_invalid_value(
    admin: Caller, account: TenantAccount, member: str, value: object
) -> None:
    body = problem(admin.post(path(account), {member: value}), 400, "invalid_body")
    assert [error["pointer"] for error in body["errors"]] == [f"/{member}"]


def test_a_plan_limits_the_size_of_a_cluster(server: str) -> None:
    account = make_tenant(plan="standard")
    caller = with_key(server, account.admin_key)
    problem(caller.post(path(account)), 403, "quota_exceeded")
    Quota(tenant_id=account.tenant.id, limits={"cluster_write_partitions": 3}).save(using="staff")
    create(caller, account, write_partitions=3)
    problem(caller.patch(path(account), {"write_partitions": 4}), 403, "quota_exceeded")
    # What is limited is the number of nodes, in whichever dimension.
    problem(caller.patch(path(account), {"query_partitions": 2}), 403, "quota_exceeded")
    quota = caller.get(f"/api/v1/tenants/{account.slug}/quota").json()
    assert quota["used"]["cluster_write_partitions"] == 3


def test_another_size_is_proposed_from_the_load_of_the_nodes(
    admin: Caller, account: TenantAccount, valkey_url: str
) -> None:
    create(admin, account, write_partitions=1, query_partitions=2)
    assert admin.get(path(account)).json()["proposal"] is None
    figures = {"busy_ppm": 800_000, "lag_us": 1_500}
    with fake_grid(account, GridSize(1, 2), valkey_url, **figures):
        body = admin.get(path(account)).json()
        assert [node["busy"] for node in body["grids"][0]["nodes"]] == [0.8] * 4
        assert body["proposal"] == {
            "write_partitions": 2,
            "query_partitions": 2,
            "reason": "busy",
            "message": "The busiest filter node keeps a core busy for 80% of the time.",
        }
        # Once it is followed there is nothing to propose until that has come about.
        admin.patch(path(account), {"write_partitions": 2})
        assert admin.get(path(account)).json()["proposal"] is None


def test_a_tenant_has_one_cluster_at_most(admin: Caller, account: TenantAccount) -> None:
    create(admin, account)
    problem(admin.post(path(account)), 409, "cluster_exists")


def test_a_cluster_is_shown_until_it_has_been_removed(
    admin: Caller, account: TenantAccount
) -> None:
    create(admin, account)
    assert admin.delete(path(account)).json()["state"] == "deleting"
    # Whoever repeats it changes nothing.
    assert admin.delete(path(account)).json()["version"] == 2
    problem(admin.post(path(account)), 409, "cluster_exists")
    problem(admin.patch(path(account), {"tier": "guaranteed"}), 409, "cluster_exists")
    assert admin.get(path(account)).json()["state"] == "deleting"


def test_a_missing_cluster_cannot_be_changed(admin: Caller, account: TenantAccount) -> None:
    problem(admin.patch(path(account), {"tier": "guaranteed"}), 404, "not_found")
    problem(admin.delete(path(account)), 404, "not_found")


def test_viewers_and_developers_may_read_and_admins_may_change_a_cluster(
    server: str, admin: Caller, account: TenantAccount
) -> None:
    create(admin, account)
    for role in (Role.VIEWER, Role.DEVELOPER):
        caller = signed_in(server, make_member(account.tenant, role))
        assert caller.get(path(account)).json()["state"] == "pending"
        problem(caller.patch(path(account), {"tier": "guaranteed"}), 403, "forbidden")
        problem(caller.delete(path(account)), 403, "forbidden")


def test_each_change_is_in_the_audit_log(admin: Caller, account: TenantAccount) -> None:
    create(admin, account)
    admin.patch(path(account), {"tier": "guaranteed"})
    admin.delete(path(account))
    with scoped(tenant_id=account.tenant.id):
        entries = AuditEntry.objects.filter(target_type="cluster").order_by("at", "id")
        assert [entry.action for entry in entries] == [
            "cluster.created",
            "cluster.updated",
            "cluster.deleted",
        ]
        before, after = entries[1].before, entries[1].after
        assert before is not None
        assert after is not None
        assert (before["tier"], after["tier"]) == ("burstable", "guaranteed")


def test_an_installation_without_clusters_reports_it(
    server: str, admin: Caller, account: TenantAccount, settings_environment: pytest.MonkeyPatch
) -> None:
    settings_environment.setenv("RILLBASE_CLUSTERS", "off")
    problem(admin.post(path(account)), 403, "clusters_not_offered")
    assert admin.get(path(account)).json()["launcher"] == "shared"


def test_a_change_is_reconciled_immediately(admin: Caller, account: TenantAccount) -> None:
    create(admin, account)
    before = Cluster.unscoped.using("relay").get(tenant_id=account.tenant.id).due_at
    Cluster.unscoped.using("relay").filter(tenant_id=account.tenant.id).update(failures=5)
    admin.patch(path(account), {"tier": "guaranteed"})
    row = Cluster.unscoped.using("relay").get(tenant_id=account.tenant.id)
    assert row.failures == 0
    assert row.due_at > before
