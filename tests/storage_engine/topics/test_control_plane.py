"""Topics in the control plane."""

from __future__ import annotations

import pytest

from foundation.scope import scoped
from tenants.models import AuditEntry, Quota
from tenants.roles import Role
from tests.caller import Caller, problem, signed_in, with_key
from tests.make import TenantAccount, make_member, make_tenant


@pytest.fixture
def account() -> TenantAccount:
    return make_tenant()


@pytest.fixture
def admin(server: str, account: TenantAccount) -> Caller:
    return with_key(server, account.admin_key)


def topics(account: TenantAccount, name: str = "") -> str:
    return f"/api/v1/tenants/{account.slug}/topics" + (f"/{name}" if name else "")


def test_a_topic_is_created_with_defaults(admin: Caller, account: TenantAccount) -> None:
    answer = admin.post(topics(account), {"name": "traffic"})
    assert answer.status_code == 201
    assert answer.headers["Location"] == topics(account, "traffic")
    assert answer.headers["ETag"] == '"v1"'
    body = answer.json()
    assert (body["kind"], body["retention_s"]) == ("hierarchy", 86_400)
    assert (body["grid"], body["max_data_bytes"]) == (None, 65_536)
    assert admin.get(topics(account, "traffic")).json() == body
    assert admin.get(topics(account)).json() == {"items": [body], "next_cursor": None}


def test_a_plane_is_created_with_its_grid(admin: Caller, account: TenantAccount) -> None:
    grid = {"bounds": [0, 0, 500, 500], "sides": 2, "depth": 5}
    answer = admin.post(topics(account), {"name": "game", "kind": "plane", "grid": grid})
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
    admin: Caller, account: TenantAccount, body: object, pointer: str
) -> None:
    details = problem(admin.post(topics(account), body), 400, "invalid_body")
    assert [error["pointer"] for error in details["errors"]] == [pointer]


def test_a_name_is_taken_once(admin: Caller, account: TenantAccount) -> None:
    admin.post(topics(account), {"name": "traffic"})
    problem(admin.post(topics(account), {"name": "traffic"}), 409, "name_taken")


def test_a_topic_is_changed_only_at_the_version_that_was_read(
    admin: Caller, account: TenantAccount
) -> None:
    admin.post(topics(account), {"name": "traffic"})
    changed = admin.patch(topics(account, "traffic"), {"retention_s": 60}, If_Match='"v1"')
    assert (changed.json()["retention_s"], changed.json()["version"]) == (60, 2)
    refusal = admin.patch(topics(account, "traffic"), {"retention_s": 70}, If_Match='"v1"')
    problem(refusal, 412, "precondition_failed")
    problem(admin.patch(topics(account, "traffic"), {"kind": "flat"}), 400, "invalid_body")


def test_a_dropped_topic_no_longer_exists_and_its_name_can_be_reused(
    admin: Caller, account: TenantAccount
) -> None:
    first = admin.post(topics(account), {"name": "traffic"}).json()
    assert admin.delete(topics(account, "traffic")).status_code == 204
    problem(admin.get(topics(account, "traffic")), 404, "not_found")
    assert admin.post(topics(account), {"name": "traffic"}).json()["id"] != first["id"]


def test_changes_are_in_the_audit_log(admin: Caller, account: TenantAccount) -> None:
    admin.post(topics(account), {"name": "traffic"})
    admin.patch(topics(account, "traffic"), {"retention_s": 60})
    admin.delete(topics(account, "traffic"))
    with scoped(tenant_id=account.tenant.id):
        entries = AuditEntry.objects.filter(target_type="topic").order_by("pk")
        assert [entry.action for entry in entries] == [
            "topic.created",
            "topic.updated",
            "topic.deleted",
        ]


def test_a_repeated_call_creates_one_topic(admin: Caller, account: TenantAccount) -> None:
    first = admin.post(topics(account), {"name": "traffic"}, Idempotency_Key="once")
    again = admin.post(topics(account), {"name": "traffic"}, Idempotency_Key="once")
    assert again.json() == first.json()
    assert again.headers["Idempotency-Replayed"] == "true"


def test_the_quota_bounds_topics(admin: Caller, account: TenantAccount) -> None:
    with scoped(tenant_id=account.tenant.id):
        Quota.objects.using("staff").create(tenant=account.tenant, limits={"topics": 1})
    assert admin.post(topics(account), {"name": "one"}).status_code == 201
    problem(admin.post(topics(account), {"name": "two"}), 403, "quota_exceeded")


def test_viewers_may_read_but_not_change_topics(
    server: str, admin: Caller, account: TenantAccount
) -> None:
    admin.post(topics(account), {"name": "traffic"})
    viewer = signed_in(server, make_member(account.tenant, Role.VIEWER))
    assert viewer.get(topics(account, "traffic")).status_code == 200
    problem(viewer.post(topics(account), {"name": "other"}), 403, "forbidden")
    problem(viewer.delete(topics(account, "traffic")), 403, "forbidden")


def test_another_tenants_topics_do_not_exist(
    server: str, admin: Caller, account: TenantAccount
) -> None:
    admin.post(topics(account), {"name": "traffic"})
    other = make_tenant()
    stranger = with_key(server, other.admin_key)
    problem(stranger.get(topics(other, "traffic")), 404, "not_found")
    assert stranger.get(topics(account, "traffic")).status_code in (403, 404)
