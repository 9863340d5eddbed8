"""Tenants and their members, as users see them."""

from __future__ import annotations

from tenants.models import Membership, Tenant
from tenants.roles import Role
from tests.caller import Caller, problem, signed_in, with_key
from tests.make import make_member, make_tenant, make_user, unique


def test_the_creator_of_a_tenant_owns_it(server: str) -> None:
    user = make_user()
    caller = signed_in(server, user)
    slug = unique("shop")
    created = caller.post("/api/v1/tenants", {"slug": slug, "name": "Shop"})
    assert created.status_code == 201, created.text
    assert created.headers["Location"] == f"/api/v1/tenants/{slug}"
    members = caller.get(f"/api/v1/tenants/{slug}/members").json()["items"]
    assert [(m["email"], m["role"]) for m in members] == [(user.email, "owner")]
    assert [t["slug"] for t in caller.get("/api/v1/tenants").json()["items"]] == [slug]


def test_a_taken_slug_is_rejected_without_side_effects(server: str) -> None:
    account = make_tenant()
    stranger = make_user()
    answer = signed_in(server, stranger).post("/api/v1/tenants", {"slug": account.slug})
    problem(answer, 409, "name_taken")
    assert not Membership.unscoped.using("auth").filter(user=stranger).exists()


def test_bad_slugs_are_refused(server: str) -> None:
    caller = signed_in(server, make_user())
    for slug in ("", "A", "Shop", "-shop", "shop-", "sh--op", "1shop", "x" * 49, "café", "a b", 7):
        answer = caller.post("/api/v1/tenants", {"slug": slug})
        assert problem(answer, 400, "invalid_body")["errors"][0]["pointer"] == "/slug"


def test_a_tenant_is_changed_only_at_the_expected_version(server: str) -> None:
    account = make_tenant()
    caller = signed_in(server, account.owner)
    path = f"/api/v1/tenants/{account.slug}"
    etag = caller.get(path).headers["ETag"]
    changed = caller.patch(path, {"name": "New"}, If_Match=etag)
    assert changed.json()["name"] == "New"
    assert changed.headers["ETag"] != etag
    problem(caller.patch(path, {"name": "Newer"}, If_Match=etag), 412, "precondition_failed")
    assert caller.get(path).json()["name"] == "New"
    problem(caller.patch(path, {"name": "X"}, If_Match="v1"), 400, "invalid_parameter")


def test_an_unchanged_tenant_is_not_sent_again(server: str) -> None:
    account = make_tenant()
    caller = signed_in(server, account.owner)
    path = f"/api/v1/tenants/{account.slug}"
    etag = caller.get(path).headers["ETag"]
    answer = caller.get(path, If_None_Match=etag)
    assert (answer.status_code, answer.content) == (304, b"")


def test_origins_must_be_origins(server: str) -> None:
    account = make_tenant()
    caller = signed_in(server, account.owner)
    path = f"/api/v1/tenants/{account.slug}"
    bad = ["*", "https://*.example.com", "https://a.example/", "ftp://a.example", "a.example"]
    answer = caller.patch(path, {"cors_origins": bad})
    assert len(problem(answer, 400, "invalid_body")["errors"]) == len(bad)
    good = ["https://app.example.com", "http://localhost:5173"]
    assert caller.patch(path, {"cors_origins": good}).json()["cors_origins"] == good


def test_a_deleted_tenant_stops_at_once_and_can_be_restored(server: str) -> None:
    account = make_tenant()
    owner = signed_in(server, account.owner)
    path = f"/api/v1/tenants/{account.slug}"
    deleted = owner.delete(path)
    assert deleted.json()["state"] == "deleting"
    assert deleted.json()["purge_at"] is not None
    problem(with_key(server, account.admin_key).get("/v1/whoami"), 410, "tenant_deleted")
    problem(owner.get(f"{path}/members"), 410, "tenant_deleted")
    assert owner.get(path).json()["state"] == "deleting"
    assert owner.post(f"{path}:restore").json()["state"] == "active"
    problem(owner.post(f"{path}:restore"), 409, "conflict")


def test_only_owners_delete_a_tenant(server: str) -> None:
    account = make_tenant()
    path = f"/api/v1/tenants/{account.slug}"
    admin = signed_in(server, make_member(account.tenant, Role.ADMIN))
    problem(admin.delete(path), 403, "forbidden")
    problem(with_key(server, account.admin_key).delete(path), 403, "forbidden")


def test_a_suspended_tenant_rejects_all_calls(server: str) -> None:
    account = make_tenant()
    Tenant.objects.using("staff").filter(pk=account.tenant.pk).update(state="suspended")
    problem(with_key(server, account.admin_key).get("/v1/whoami"), 403, "tenant_suspended")


def test_a_role_can_be_granted_only_by_members_of_at_least_that_role(server: str) -> None:
    account = make_tenant()
    admin = make_member(account.tenant, Role.ADMIN)
    viewer = make_member(account.tenant, Role.VIEWER)
    caller = signed_in(server, admin)
    path = f"/api/v1/tenants/{account.slug}/members"
    assert caller.patch(f"{path}/{viewer.id}", {"role": "developer"}).json()["role"] == "developer"
    problem(caller.patch(f"{path}/{viewer.id}", {"role": "owner"}), 403, "forbidden")
    problem(caller.patch(f"{path}/{account.owner.id}", {"role": "viewer"}), 403, "forbidden")
    problem(caller.delete(f"{path}/{account.owner.id}"), 403, "forbidden")


def test_a_tenant_keeps_an_owner(server: str) -> None:
    account = make_tenant()
    caller = signed_in(server, account.owner)
    path = f"/api/v1/tenants/{account.slug}/members/{account.owner.id}"
    problem(caller.delete(path), 409, "last_owner")
    problem(caller.patch(path, {"role": "admin"}), 409, "last_owner")
    make_member(account.tenant, Role.OWNER)
    assert caller.delete(path).status_code == 204
    problem(caller.get(path), 404, "not_found")


def test_everybody_may_leave(server: str) -> None:
    account = make_tenant()
    viewer = make_member(account.tenant, Role.VIEWER)
    path = f"/api/v1/tenants/{account.slug}/members/{viewer.id}"
    assert signed_in(server, viewer).delete(path).status_code == 204


def test_changes_are_in_the_audit_log_without_secrets(server: str) -> None:
    account = make_tenant()
    caller = signed_in(server, account.owner)
    path = f"/api/v1/tenants/{account.slug}"
    secret = caller.post(f"{path}/api-keys", {"name": "k", "scopes": ["documents:read"]}).json()[
        "secret"
    ]
    caller.patch(path, {"name": "Renamed"})
    log = caller.get(f"{path}/audit-log")
    entries = log.json()["items"]
    assert [e["action"] for e in entries] == ["tenant.updated", "api_key.created"]
    assert entries[0]["before"]["name"] == "Test tenant"
    assert entries[0]["after"]["name"] == "Renamed"
    assert entries[0]["actor_label"] == account.owner.email
    assert entries[0]["address"] == "127.0.0.1"
    assert secret not in log.text
    only = caller.get(f"{path}/audit-log?action=api_key.created").json()["items"]
    assert [e["action"] for e in only] == ["api_key.created"]
    for start in ("action=api_key", f"actor={account.owner.email[:9].upper()}"):
        matching = caller.get(f"{path}/audit-log?{start}").json()["items"]
        assert "api_key.created" in [e["action"] for e in matching]
    assert caller.get(f"{path}/audit-log?action=%25").json()["items"] == []


def test_a_refused_change_is_not_in_the_audit_log(server: str) -> None:
    account = make_tenant()
    caller = signed_in(server, account.owner)
    path = f"/api/v1/tenants/{account.slug}"
    caller.patch(path, {"name": "X"}, If_Match='"v99"')
    assert caller.get(f"{path}/audit-log").json()["items"] == []


def test_quota_and_usage_can_be_read(server: str) -> None:
    account = make_tenant(plan="free")
    caller = signed_in(server, account.owner)
    path = f"/api/v1/tenants/{account.slug}"
    quota = caller.get(f"{path}/quota").json()
    assert quota["plan"] == "free"
    assert quota["used"] == {
        "members": 1,
        "api_keys": 1,
        "webhooks": 0,
        "issuers": 0,
        "saved_queries": 0,
        "collections": 0,
        "topics": 0,
        "aggregates": 0,
        "datasets": 0,
        "sources": 0,
        "cluster_write_partitions": 0,
    }
    usage = caller.get(f"{path}/usage?granularity=day").json()
    assert usage["granularity"] == "day"
    problem(caller.get(f"{path}/usage?granularity=year"), 400, "invalid_parameter")
    problem(caller.get(f"{path}/usage?since=yesterday"), 400, "invalid_parameter")
    problem(caller.get(f"{path}/usage?since=2020-01-01T00:00:00Z"), 400, "invalid_parameter")


def test_listed_origins_may_read_the_data_plane(server: str) -> None:
    account = make_tenant()
    signed_in(server, account.owner).patch(
        f"/api/v1/tenants/{account.slug}", {"cors_origins": ["https://app.example.com"]}
    )
    caller = with_key(server, account.admin_key)
    allowed = caller.get("/v1/whoami", Origin="https://app.example.com")
    assert allowed.headers["Access-Control-Allow-Origin"] == "https://app.example.com"
    assert "Access-Control-Allow-Credentials" not in allowed.headers
    problem(caller.get("/v1/whoami", Origin="https://evil.example"), 403, "forbidden")
    before = Caller(server).call(
        "OPTIONS",
        "/v1/whoami",
        Origin="https://app.example.com",
        Access_Control_Request_Method="GET",
    )
    assert before.status_code == 204
    assert "rillbase-key" in before.headers["Access-Control-Allow-Headers"]
