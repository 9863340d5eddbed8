"""The life cycle of API keys, as a tenant sees it."""

from __future__ import annotations

import datetime

from django.utils import timezone

from foundation.scope import scoped
from tenants.models import ApiKey
from tenants.roles import Role
from tests.caller import Caller, problem, signed_in, with_key
from tests.make import TenantAccount, make_key, make_member, make_tenant
from tests.revocation import refused_within_a_second

SCOPES = ["documents:read", "documents:write"]


def keys_of(account: TenantAccount) -> str:
    return f"/api/v1/tenants/{account.slug}/api-keys"


def create(caller: Caller, account: TenantAccount, **fields: object) -> dict[str, object]:
    answer = caller.post(keys_of(account), {"name": "k", "scopes": SCOPES, **fields})
    assert answer.status_code == 201, answer.text
    body: dict[str, object] = answer.json()
    return body


def test_a_new_key_gives_access_to_the_data_plane_of_its_tenant(server: str) -> None:
    account = make_tenant()
    key = create(with_key(server, account.admin_key), account)
    who = with_key(server, str(key["secret"])).get("/v1/whoami")
    assert who.status_code == 200, who.text
    assert who.json()["tenant"] == account.slug
    assert who.json()["scopes"] == sorted(SCOPES)


def test_the_secret_is_shown_once_and_stored_nowhere(server: str) -> None:
    account = make_tenant()
    caller = with_key(server, account.admin_key)
    key = create(caller, account)
    assert "secret" not in caller.get(f"{keys_of(account)}/{key['id']}").json()
    assert all("secret" not in item for item in caller.get(keys_of(account)).json()["items"])
    with scoped(tenant_id=account.tenant.id):
        row = ApiKey.objects.get(pk=str(key["id"]))
        assert str(key["secret"]).encode() not in bytes(row.secret_hash)


def test_repeating_the_creation_creates_no_second_key_and_shows_no_secret(server: str) -> None:
    account = make_tenant()
    caller = with_key(server, account.admin_key)
    body = {"name": "once", "scopes": SCOPES}
    first = caller.post(keys_of(account), body, Idempotency_Key="make-it")
    again = caller.post(keys_of(account), body, Idempotency_Key="make-it")
    assert again.status_code == first.status_code == 201
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json() == {**first.json(), "secret": None}
    assert again.headers["Location"] == first.headers["Location"]


def test_a_revoked_key_is_refused_within_a_second(server: str) -> None:
    account = make_tenant()
    caller = with_key(server, account.admin_key)
    key = create(caller, account)
    user = with_key(server, str(key["secret"]))
    assert user.get("/v1/whoami").status_code == 200
    assert caller.delete(f"{keys_of(account)}/{key['id']}").json()["state"] == "revoked"
    refused_within_a_second(lambda: user.get("/v1/whoami"))
    problem(user.get("/v1/whoami"), 401, "invalid_credentials")


def test_a_rotated_key_remains_valid_during_the_overlap(server: str) -> None:
    account = make_tenant()
    caller = with_key(server, account.admin_key)
    key = create(caller, account)
    rotated = caller.post(f"{keys_of(account)}/{key['id']}/rotate", {"overlap_s": 60})
    assert rotated.status_code == 201, rotated.text
    assert rotated.json()["scopes"] == SCOPES
    for secret in (str(key["secret"]), rotated.json()["secret"]):
        assert with_key(server, secret).get("/v1/whoami").status_code == 200
    old = caller.get(f"{keys_of(account)}/{key['id']}").json()
    assert old["successor_id"] == rotated.json()["id"]
    assert old["expires_at"] is not None
    problem(caller.post(f"{keys_of(account)}/{key['id']}/rotate"), 409, "conflict")


def test_rotation_without_overlap_ends_the_old_key(server: str) -> None:
    account = make_tenant()
    caller = with_key(server, account.admin_key)
    key = create(caller, account)
    caller.post(f"{keys_of(account)}/{key['id']}/rotate", {"overlap_s": 0})
    user = with_key(server, str(key["secret"]))
    problem(user.get("/v1/whoami"), 401, "credentials_expired")


def test_an_expired_key_is_refused(server: str) -> None:
    account = make_tenant()
    key = make_key(account.tenant, expires_at=timezone.now() - datetime.timedelta(seconds=1))
    problem(with_key(server, key).get("/v1/whoami"), 401, "credentials_expired")


def test_a_key_works_only_from_its_networks(server: str) -> None:
    account = make_tenant()
    here = make_key(account.tenant, allowed_networks=["127.0.0.0/8"])
    elsewhere = make_key(account.tenant, allowed_networks=["192.0.2.0/24"])
    assert with_key(server, here).get("/v1/whoami").status_code == 200
    problem(with_key(server, elsewhere).get("/v1/whoami"), 403, "address_not_allowed")


def test_a_mistyped_key_is_distinguished_from_an_unknown_one(server: str) -> None:
    account = make_tenant()
    wrong = account.admin_key[:-1] + ("0" if account.admin_key[-1] != "0" else "1")
    problem(with_key(server, wrong).get("/v1/whoami"), 401, "malformed_key")
    problem(with_key(server, "nonsense").get("/v1/whoami"), 401, "malformed_key")


def test_only_admin_keys_may_call_the_control_plane(server: str) -> None:
    account = make_tenant()
    key = make_key(account.tenant, scopes=SCOPES)
    problem(with_key(server, key).get(keys_of(account)), 403, "forbidden")


def test_a_developer_creates_keys_but_none_with_admin(server: str) -> None:
    account = make_tenant()
    caller = signed_in(server, make_member(account.tenant, Role.DEVELOPER))
    create(caller, account)
    refusal = caller.post(keys_of(account), {"name": "k", "scopes": ["admin"]})
    problem(refusal, 403, "forbidden")


def test_a_developer_cannot_take_over_an_admin_key(server: str) -> None:
    account = make_tenant()
    admin_key = create(with_key(server, account.admin_key), account, scopes=["admin"])
    caller = signed_in(server, make_member(account.tenant, Role.DEVELOPER))
    path = f"{keys_of(account)}/{admin_key['id']}"
    problem(caller.post(f"{path}/rotate"), 403, "forbidden")
    problem(caller.delete(path), 403, "forbidden")
    problem(caller.patch(path, {"allowed_networks": []}), 403, "forbidden")


def test_a_viewer_sees_no_keys(server: str) -> None:
    account = make_tenant()
    caller = signed_in(server, make_member(account.tenant, Role.VIEWER))
    problem(caller.get(keys_of(account)), 403, "forbidden")


def test_a_publishable_key_can_be_shown_again_and_has_only_harmless_scopes(server: str) -> None:
    account = make_tenant()
    caller = with_key(server, account.admin_key)
    key = create(caller, account, kind="publishable", scopes=["documents:read"])
    shown = caller.get(f"{keys_of(account)}/{key['id']}").json()["key"]
    assert shown == key["secret"]
    who = Caller(server, {"Rillbase-Key": shown}).get("/v1/whoami").json()
    assert who["kind"] == "publishable_key"
    assert who["obeys_access_rules"] is True
    refusal = caller.post(
        keys_of(account), {"name": "k", "kind": "publishable", "scopes": ["admin"]}
    )
    assert problem(refusal, 400, "invalid_body")["errors"][0]["pointer"] == "/scopes"


def test_a_publishable_key_is_no_bearer_and_a_secret_key_no_publishable_one(server: str) -> None:
    account = make_tenant()
    public = make_key(account.tenant, kind=ApiKey.Kind.PUBLISHABLE)
    problem(with_key(server, public).get("/v1/whoami"), 401, "invalid_credentials")
    caller = Caller(server, {"Rillbase-Key": account.admin_key})
    problem(caller.get("/v1/whoami"), 401, "invalid_credentials")


def test_the_quota_of_keys_is_enforced(server: str) -> None:
    account = make_tenant(plan="free")
    caller = with_key(server, account.admin_key)
    for _ in range(9):
        create(caller, account)
    problem(caller.post(keys_of(account), {"name": "k", "scopes": SCOPES}), 403, "quota_exceeded")
    first = caller.get(keys_of(account)).json()["items"][0]
    caller.delete(f"{keys_of(account)}/{first['id']}")
    create(caller, account)


def test_the_last_use_of_a_key_is_recorded(server: str) -> None:
    account = make_tenant()
    caller = with_key(server, account.admin_key)
    key = create(caller, account)
    with_key(server, str(key["secret"])).get("/v1/whoami")
    assert caller.get(f"{keys_of(account)}/{key['id']}").json()["last_used_at"] is not None


def test_a_past_expiry_and_bad_networks_are_refused_by_name(server: str) -> None:
    account = make_tenant()
    body = {
        "name": "k",
        "scopes": ["documents:read", "nonsense"],
        "expires_at": "2020-01-01T00:00:00Z",
        "allowed_networks": ["not a network"],
        "collections": ["Bad Name"],
    }
    answer = with_key(server, account.admin_key).post(keys_of(account), body)
    pointers = {e["pointer"] for e in problem(answer, 400, "invalid_body")["errors"]}
    assert pointers == {"/scopes/1", "/expires_at", "/allowed_networks/0", "/collections/0"}
