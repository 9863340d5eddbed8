"""Topics in the control plane."""

from __future__ import annotations

import pytest

from foundation.scope import scoped
from tenants.models import AuditEntry, Quota
from tenants.roles import Role
from tests.caller import Caller, problem, signed_in, with_key
from tests.make import MadeTenant, make_member, make_tenant


@pytest.fixture
def made() -> MadeTenant:
    return make_tenant()


@pytest.fixture
def admin(server: str, made: MadeTenant) -> Caller:
    return with_key(server, made.admin_key)


def topics(made: MadeTenant, name: str = "") -> str:
    return f"/api/v1/tenants/{made.slug}/topics" + (f"/{name}" if name else "")


def test_a_topic_is_created_with_defaults(admin: Caller, made: MadeTenant) -> None:
    answer = admin.post(topics(made), {"name": "traffic"})
    assert answer.status_code == 201
    assert answer.headers["Location"] == topics(made, "traffic")
    assert answer.headers["ETag"] == '"v1"'
    body = answer.json()
    assert (body["kind"], body["retention_s"]) == ("hierarchy", 86_400)
    assert (body["grid"], body["max_data_bytes"]) == (None, 65_536)
    assert admin.get(topics(made, "traffic")).json() == body
    assert admin.get(topics(made)).json() == {"items": [body], "next_cursor": None}


def test_a_plane_is_made_with_its_grid(admin: Caller, made: MadeTenant) -> None:
    grid = {"bounds": [0, 0, 500, 500], "sides": 2, "depth": 5}
    answer = admin.post(topics(made), {"name": "game", "kind": "plane", "grid": grid})
    assert answer.status_code == 201, answer.text
    assert answer.json()["grid"] == grid


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/name"),
        ({"name": "Traffic"}, "/name"),
        ({"name": "a", "kind": "tree"}, "/kind"),
        ({"name": "a", "retention_s": 0}, "/retention_s"),
        ({"name": "a", "max_data_bytes": 1 << 30}, "/max_data_bytes"),
        ({"name": "a", "kind": "plane"}, "/grid"),
        ({"name": "a", "grid": {"bounds": [0, 0, 1, 1]}}, "/grid"),
        ({"name": "a", "kind": "plane", "grid": {"bounds": [1, 0, 0, 1]}}, "/grid/bounds"),
        ({"name": "a", "surprise": 1}, "/surprise"),
    ],
)
def test_the_error_names_an_invalid_topic_setting(
    admin: Caller, made: MadeTenant, body: object, pointer: str
) -> None:
    details = problem(admin.post(topics(made), body), 400, "invalid_body")
    assert [error["pointer"] for error in details["errors"]] == [pointer]


def test_a_name_is_taken_once(admin: Caller, made: MadeTenant) -> None:
    admin.post(topics(made), {"name": "traffic"})
    problem(admin.post(topics(made), {"name": "traffic"}), 409, "name_taken")


def test_a_topic_is_changed_only_at_the_version_that_was_read(
    admin: Caller, made: MadeTenant
) -> None:
    admin.post(topics(made), {"name": "traffic"})
    changed = admin.patch(topics(made, "traffic"), {"retention_s": 60}, If_Match='"v1"')
    assert (changed.json()["retention_s"], changed.json()["version"]) == (60, 2)
    refused = admin.patch(topics(made, "traffic"), {"retention_s": 70}, If_Match='"v1"')
    problem(refused, 412, "precondition_failed")
    problem(admin.patch(topics(made, "traffic"), {"kind": "flat"}), 400, "invalid_body")


def test_a_dropped_topic_is_gone_and_its_name_free(admin: Caller, made: MadeTenant) -> None:
    first = admin.post(topics(made), {"name": "traffic"}).json()
    assert admin.delete(topics(made, "traffic")).status_code == 204
    problem(admin.get(topics(made, "traffic")), 404, "not_found")
    assert admin.post(topics(made), {"name": "traffic"}).json()["id"] != first["id"]


def test_changes_are_in_the_audit_log(admin: Caller, made: MadeTenant) -> None:
    admin.post(topics(made), {"name": "traffic"})
    admin.patch(topics(made, "traffic"), {"retention_s": 60})
    admin.delete(topics(made, "traffic"))
    with scoped(tenant_id=made.tenant.id):
        found = AuditEntry.objects.filter(target_type="topic").order_by("pk")
        assert [entry.action for entry in found] == [
            "topic.created",
            "topic.updated",
            "topic.deleted",
        ]


def test_a_repeated_call_makes_one_topic(admin: Caller, made: MadeTenant) -> None:
    first = admin.post(topics(made), {"name": "traffic"}, Idempotency_Key="once")
    again = admin.post(topics(made), {"name": "traffic"}, Idempotency_Key="once")
    assert again.json() == first.json()
    assert again.headers["Idempotency-Replayed"] == "true"


def test_the_quota_bounds_topics(admin: Caller, made: MadeTenant) -> None:
    with scoped(tenant_id=made.tenant.id):
        Quota.objects.using("staff").create(tenant=made.tenant, limits={"topics": 1})
    assert admin.post(topics(made), {"name": "one"}).status_code == 201
    problem(admin.post(topics(made), {"name": "two"}), 403, "quota_exceeded")


def test_viewers_may_read_but_not_change_topics(
    server: str, admin: Caller, made: MadeTenant
) -> None:
    admin.post(topics(made), {"name": "traffic"})
    viewer = signed_in(server, make_member(made.tenant, Role.VIEWER))
    assert viewer.get(topics(made, "traffic")).status_code == 200
    problem(viewer.post(topics(made), {"name": "other"}), 403, "forbidden")
    problem(viewer.delete(topics(made, "traffic")), 403, "forbidden")


def test_another_tenants_topics_do_not_exist(server: str, admin: Caller, made: MadeTenant) -> None:
    admin.post(topics(made), {"name": "traffic"})
    other = make_tenant()
    stranger = with_key(server, other.admin_key)
    problem(stranger.get(topics(other, "traffic")), 404, "not_found")
    assert stranger.get(topics(made, "traffic")).status_code in (403, 404)
