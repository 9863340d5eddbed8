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
from tests.make import MadeTenant, make_member, make_tenant
from tests.realtime.pretended import pretended_grid


@pytest.fixture
def made() -> MadeTenant:
    return make_tenant(plan="dedicated")


@pytest.fixture
def admin(server: str, made: MadeTenant) -> Caller:
    return with_key(server, made.admin_key)


def path(made: MadeTenant) -> str:
    return f"/api/v1/tenants/{made.slug}/cluster"


def create(caller: Caller, made: MadeTenant, **members: object) -> dict[str, Any]:
    answer = caller.post(path(made), members)
    assert answer.status_code == 202, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_a_tenant_without_a_cluster_sees_the_shared_grid(admin: Caller, made: MadeTenant) -> None:
    body = admin.get(path(made)).json()
    assert (body["launcher"], body["state"]) == ("shared", "shared")
    assert (body["write_partitions"], body["version"]) == (None, None)
    assert [grid["epoch"] for grid in body["grids"]] == [1]


def test_a_cluster_is_requested_with_defaults(admin: Caller, made: MadeTenant) -> None:
    answer = admin.post(path(made))
    assert answer.status_code == 202, answer.text
    assert answer.headers["Location"] == path(made)
    assert answer.headers["ETag"] == '"v1"'
    body = answer.json()
    assert body == {**admin.get(path(made)).json()}
    assert (body["launcher"], body["state"]) == ("kubernetes", "pending")
    assert (body["write_partitions"], body["node_size"]) == (2, "small")
    assert (body["tier"], body["image"], body["idle_after_s"]) == ("burstable", None, 1800)


def test_a_cluster_is_changed_only_at_the_version_that_was_read(
    admin: Caller, made: MadeTenant
) -> None:
    create(admin, made, write_partitions=1)
    problem(
        admin.patch(path(made), {"write_partitions": 3}, If_Match='"v7"'),
        412,
        "precondition_failed",
    )
    changes = {"write_partitions": 3, "image": "next", "idle_after_s": None}
    answer = admin.patch(path(made), changes, If_Match='"v1"')
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
    admin: Caller, made: MadeTenant, member: str, value: object
) -> None:
    body = problem(admin.post(path(made), {member: value}), 400, "invalid_body")
    assert [error["pointer"] for error in body["errors"]] == [f"/{member}"]


def test_a_plan_limits_the_size_of_a_cluster(server: str) -> None:
    made = make_tenant(plan="standard")
    caller = with_key(server, made.admin_key)
    problem(caller.post(path(made)), 403, "quota_exceeded")
    Quota(tenant_id=made.tenant.id, limits={"cluster_write_partitions": 3}).save(using="staff")
    create(caller, made, write_partitions=3)
    problem(caller.patch(path(made), {"write_partitions": 4}), 403, "quota_exceeded")
    # What is limited is the number of nodes, in whichever dimension.
    problem(caller.patch(path(made), {"query_partitions": 2}), 403, "quota_exceeded")
    quota = caller.get(f"/api/v1/tenants/{made.slug}/quota").json()
    assert quota["used"]["cluster_write_partitions"] == 3


def test_another_size_is_proposed_from_the_load_of_the_nodes(
    admin: Caller, made: MadeTenant, valkey_url: str
) -> None:
    create(admin, made, write_partitions=1, query_partitions=2)
    assert admin.get(path(made)).json()["proposal"] is None
    figures = {"busy_ppm": 800_000, "lag_us": 1_500}
    with pretended_grid(made, GridSize(1, 2), valkey_url, **figures):
        body = admin.get(path(made)).json()
        assert [node["busy"] for node in body["grids"][0]["nodes"]] == [0.8] * 4
        assert body["proposal"] == {
            "write_partitions": 2,
            "query_partitions": 2,
            "reason": "busy",
            "message": "The busiest filter node keeps a core busy for 80% of the time.",
        }
        # Once it is followed there is nothing to propose until that has come about.
        admin.patch(path(made), {"write_partitions": 2})
        assert admin.get(path(made)).json()["proposal"] is None


def test_a_tenant_has_one_cluster_at_most(admin: Caller, made: MadeTenant) -> None:
    create(admin, made)
    problem(admin.post(path(made)), 409, "cluster_exists")


def test_a_removed_cluster_is_shown_until_it_is_gone(admin: Caller, made: MadeTenant) -> None:
    create(admin, made)
    assert admin.delete(path(made)).json()["state"] == "deleting"
    # Whoever repeats it changes nothing.
    assert admin.delete(path(made)).json()["version"] == 2
    problem(admin.post(path(made)), 409, "cluster_exists")
    problem(admin.patch(path(made), {"tier": "guaranteed"}), 409, "cluster_exists")
    assert admin.get(path(made)).json()["state"] == "deleting"


def test_a_missing_cluster_cannot_be_changed(admin: Caller, made: MadeTenant) -> None:
    problem(admin.patch(path(made), {"tier": "guaranteed"}), 404, "not_found")
    problem(admin.delete(path(made)), 404, "not_found")


def test_viewers_and_developers_may_read_and_admins_may_change_a_cluster(
    server: str, admin: Caller, made: MadeTenant
) -> None:
    create(admin, made)
    for role in (Role.VIEWER, Role.DEVELOPER):
        caller = signed_in(server, make_member(made.tenant, role))
        assert caller.get(path(made)).json()["state"] == "pending"
        problem(caller.patch(path(made), {"tier": "guaranteed"}), 403, "forbidden")
        problem(caller.delete(path(made)), 403, "forbidden")


def test_each_change_is_in_the_audit_log(admin: Caller, made: MadeTenant) -> None:
    create(admin, made)
    admin.patch(path(made), {"tier": "guaranteed"})
    admin.delete(path(made))
    with scoped(tenant_id=made.tenant.id):
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
    server: str, admin: Caller, made: MadeTenant, settings_environment: pytest.MonkeyPatch
) -> None:
    settings_environment.setenv("RILLBASE_CLUSTERS", "off")
    problem(admin.post(path(made)), 403, "clusters_not_offered")
    assert admin.get(path(made)).json()["launcher"] == "shared"


def test_a_change_is_reconciled_immediately(admin: Caller, made: MadeTenant) -> None:
    create(admin, made)
    before = Cluster.unscoped.using("relay").get(tenant_id=made.tenant.id).due_at
    Cluster.unscoped.using("relay").filter(tenant_id=made.tenant.id).update(failures=5)
    admin.patch(path(made), {"tier": "guaranteed"})
    row = Cluster.unscoped.using("relay").get(tenant_id=made.tenant.id)
    assert row.failures == 0
    assert row.due_at > before
