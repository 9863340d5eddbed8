"""Personal tokens: what they give access to, and how they end."""

from __future__ import annotations

import datetime

import pytest
from django.utils import timezone

from foundation.models import IdempotencyRecord
from foundation.scope import scoped
from tenants.models import PersonalToken
from tenants.roles import Role
from tests.browser import Browser, browser_of
from tests.caller import problem, with_key
from tests.make import make_member, make_tenant, make_user
from tests.revocation import refused_within_a_second


def _days_left(token: dict[str, str]) -> float:
    until = datetime.datetime.fromisoformat(token["expires_at"]) - timezone.now()
    return until / datetime.timedelta(days=1)


def test_a_token_works_in_all_tenants_of_its_user_and_is_shown_once(server: str) -> None:
    first = make_tenant()
    second = make_tenant(owner=first.owner)
    browser = browser_of(server, first.owner.email)
    created = browser.post("me/tokens", {"name": "laptop"})
    assert created.status_code == 201, created.text
    token = created.json()
    assert created.headers["Location"] == f"/api/v1/me/tokens/{token['id']}"
    assert token["secret"].startswith("rbt_")
    script = with_key(server, token["secret"])
    for tenant in (first, second):
        assert script.get(f"/api/v1/tenants/{tenant.slug}").status_code == 200
    answer = browser.get(f"me/tokens/{token['id']}")
    assert (answer.json()["name"], answer.headers["ETag"]) == ("laptop", created.headers["ETag"])
    listed = browser.get("me/tokens")
    assert [item["id"] for item in listed.json()["items"]] == [token["id"]]
    assert "secret" not in listed.json()["items"][0]
    assert token["secret"] not in listed.text


def test_a_bound_token_opens_one_tenant_only(server: str) -> None:
    first = make_tenant()
    second = make_tenant(owner=first.owner)
    browser = browser_of(server, first.owner.email)
    token = browser.post(f"tenants/{first.slug}/tokens", {"name": "ci"}).json()
    assert (token["tenant"], token["tenant_id"]) == (first.slug, str(first.tenant.id))
    script = with_key(server, token["secret"])
    assert script.get(f"/api/v1/tenants/{first.slug}").status_code == 200
    problem(script.get(f"/api/v1/tenants/{second.slug}"), 404, "not_found")
    slugs = [t["slug"] for t in script.get("/api/v1/tenants").json()["items"]]
    assert slugs == [first.slug]


def test_a_revoked_token_is_refused_within_a_second(server: str) -> None:
    account = make_tenant()
    browser = browser_of(server, account.owner.email)
    token = browser.post("me/tokens", {"name": "x"}).json()
    script = with_key(server, token["secret"])
    assert script.get("/api/v1/me").status_code == 200
    revoked = browser.delete(f"me/tokens/{token['id']}")
    assert revoked.json()["state"] == "revoked"
    refused_within_a_second(lambda: script.get("/api/v1/me"))
    problem(script.get("/api/v1/me"), 401, "invalid_credentials")
    problem(browser.delete(f"me/tokens/{token['id']}"), 409, "conflict")


def test_a_token_expires_at_the_requested_time(server: str) -> None:
    browser = browser_of(server, make_user().email)
    assert 89 < _days_left(browser.post("me/tokens", {"name": "x"}).json()) < 90
    thirty = browser.post("me/tokens", {"name": "x", "expires_in_days": 30}).json()
    assert 29 < _days_left(thirty) < 30
    never = browser.post("me/tokens", {"name": "x", "expires_at": None}).json()
    assert never["expires_at"] is None
    exact = browser.post("me/tokens", {"name": "x", "expires_at": "2099-01-02T03:04:05Z"}).json()
    assert exact["expires_at"] == "2099-01-02T03:04:05.000Z"


def test_an_expired_token_is_reported_as_expired(server: str) -> None:
    user = make_user()
    browser = browser_of(server, user.email)
    token = browser.post("me/tokens", {"name": "x"}).json()
    with scoped(user_id=user.id):
        PersonalToken.objects.filter(pk=token["id"]).update(
            expires_at=timezone.now() - datetime.timedelta(minutes=1)
        )
    script = with_key(server, token["secret"])
    problem(script.get("/api/v1/me"), 401, "credentials_expired")
    assert browser.get("me/tokens").json()["items"][0]["state"] == "expired"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/name"),
        ({"name": ""}, "/name"),
        ({"name": "x" * 101}, "/name"),
        ({"name": "x", "expires_in_days": 0}, "/expires_in_days"),
        ({"name": "x", "expires_in_days": 10**12}, "/expires_in_days"),
        ({"name": "x", "expires_in_days": "soon"}, "/expires_in_days"),
        ({"name": "x", "expires_at": "2001-01-01T00:00:00Z"}, "/expires_at"),
        ({"name": "x", "expires_at": "9999-99-99"}, "/expires_at"),
        (
            {"name": "x", "expires_at": "2099-01-01T00:00:00Z", "expires_in_days": 3},
            "/expires_in_days",
        ),
        ({"name": "x", "scopes": ["admin"]}, "/scopes"),
        ({"name": "x", "user_id": "1"}, "/user_id"),
    ],
)
def test_malformed_tokens_are_refused(server: str, body: object, pointer: str) -> None:
    browser = browser_of(server, make_user().email)
    rejection = problem(browser.post("me/tokens", body), 400, "invalid_body")
    assert [error["pointer"] for error in rejection["errors"]] == [pointer]
    assert browser.get("me/tokens").json()["items"] == []


def test_neither_tokens_nor_keys_can_create_tokens(server: str) -> None:
    account = make_tenant()
    browser = browser_of(server, account.owner.email)
    script = with_key(server, browser.post("me/tokens", {"name": "x"}).json()["secret"])
    path = f"/api/v1/tenants/{account.slug}/tokens"
    problem(script.post("/api/v1/me/tokens", {"name": "y"}), 403, "forbidden")
    problem(script.post(path, {"name": "y"}), 403, "forbidden")
    problem(with_key(server, account.admin_key).post(path, {"name": "y"}), 403, "forbidden")
    assert len(browser.get("me/tokens").json()["items"]) == 1


def test_members_see_their_own_tokens_and_admins_all(server: str) -> None:
    account = make_tenant()
    developer = make_member(account.tenant, Role.DEVELOPER)
    path = f"tenants/{account.slug}/tokens"
    owner, dev = browser_of(server, account.owner.email), browser_of(server, developer.email)
    owners = owner.post(path, {"name": "mine"}).json()["id"]
    devs = dev.post(path, {"name": "theirs"}).json()["id"]
    assert [item["id"] for item in dev.get(path).json()["items"]] == [devs]
    seen = owner.get(path).json()["items"]
    assert [(item["id"], item["user_email"]) for item in seen] == [
        (devs, developer.email),
        (owners, account.owner.email),
    ]
    by_key = with_key(server, account.admin_key).get(f"/api/v1/{path}").json()["items"]
    assert [item["id"] for item in by_key] == [devs, owners]

    problem(dev.get(f"{path}/{owners}"), 404, "not_found")
    problem(dev.delete(f"{path}/{owners}"), 404, "not_found")
    assert owner.get(f"{path}/{devs}").json()["user_email"] == developer.email
    assert owner.delete(f"{path}/{devs}").json()["state"] == "revoked"
    log = owner.get(f"tenants/{account.slug}/audit-log").json()["items"]
    assert [entry["action"] for entry in log[:3]] == [
        "token.revoked",
        "token.created",
        "token.created",
    ]
    assert log[0]["target_id"] == devs


def test_an_unbound_token_is_its_users_business_only(server: str) -> None:
    account = make_tenant()
    member = make_member(account.tenant, Role.DEVELOPER)
    token = browser_of(server, member.email).post("me/tokens", {"name": "x"}).json()["id"]
    owner = browser_of(server, account.owner.email)
    assert owner.get(f"tenants/{account.slug}/tokens").json()["items"] == []
    problem(owner.delete(f"tenants/{account.slug}/tokens/{token}"), 404, "not_found")
    problem(owner.delete(f"me/tokens/{token}"), 404, "not_found")


def test_another_tenants_tokens_do_not_exist(server: str) -> None:
    account, other = make_tenant(), make_tenant()
    owner, stranger = (browser_of(server, m.owner.email) for m in (account, other))
    token = owner.post(f"tenants/{account.slug}/tokens", {"name": "x"}).json()["id"]
    problem(stranger.get(f"tenants/{account.slug}/tokens"), 404, "not_found")
    problem(stranger.delete(f"tenants/{other.slug}/tokens/{token}"), 404, "not_found")
    assert stranger.get(f"tenants/{other.slug}/tokens").json()["items"] == []


def test_a_repeated_call_creates_one_token_and_shows_its_secret_once(server: str) -> None:
    browser = browser_of(server, make_user().email)
    first = browser.post("me/tokens", {"name": "x"}, Idempotency_Key="token-1").json()
    again = browser.post("me/tokens", {"name": "x"}, Idempotency_Key="token-1").json()
    assert again == {**first, "secret": None}
    assert len(browser.get("me/tokens").json()["items"]) == 1
    kept = IdempotencyRecord.objects.using("relay").values_list("body", flat=True)
    assert not any(first["secret"].encode() in bytes(body) for body in kept)


def test_a_user_has_a_bounded_number_of_tokens(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenants.actions.tokens.MAX_TOKENS", 2)
    browser.log_in(make_user().email)
    ids = [browser.post("me/tokens", {"name": "x"}).json()["id"] for _ in range(2)]
    problem(browser.post("me/tokens", {"name": "x"}), 403, "quota_exceeded")
    browser.delete(f"me/tokens/{ids[0]}")
    assert browser.post("me/tokens", {"name": "x"}).status_code == 201


def test_pages_of_tokens_follow_one_another(server: str) -> None:
    browser = browser_of(server, make_user().email)
    tokens = [browser.post("me/tokens", {"name": str(n)}).json()["id"] for n in range(3)]
    page = browser.get("me/tokens?limit=2").json()
    rest = browser.get(f"me/tokens?limit=2&cursor={page['next_cursor']}").json()
    assert [item["id"] for item in page["items"] + rest["items"]] == tokens[::-1]
    assert rest["next_cursor"] is None
    other = browser_of(server, make_user().email)
    problem(other.get(f"me/tokens?cursor={page['next_cursor']}"), 400, "invalid_cursor")


def test_a_member_who_leaves_and_returns_does_not_find_old_tokens_working(server: str) -> None:
    account = make_tenant()
    member = make_member(account.tenant, Role.DEVELOPER)
    theirs = browser_of(server, member.email)
    path = f"tenants/{account.slug}/tokens"
    secret = theirs.post(path, {"name": "x"}).json()["secret"]
    owner = browser_of(server, account.owner.email)
    removed = owner.delete(f"tenants/{account.slug}/members/{member.id}")
    assert removed.status_code == 204, removed.text
    make_member(account.tenant, Role.DEVELOPER, user=member)
    script = with_key(server, secret)
    problem(script.get(f"/api/v1/tenants/{account.slug}"), 401, "invalid_credentials")
    log = owner.get(f"tenants/{account.slug}/audit-log").json()["items"]
    assert [entry["action"] for entry in log[:2]] == ["token.revoked", "member.removed"]


def test_the_tokens_of_a_leaving_member_are_revoked(server: str) -> None:
    account = make_tenant()
    member = make_member(account.tenant, Role.VIEWER)
    theirs = browser_of(server, member.email)
    theirs.post(f"tenants/{account.slug}/tokens", {"name": "x"})
    left = theirs.delete(f"tenants/{account.slug}/members/{member.id}")
    assert left.status_code == 204, left.text
    assert [item["state"] for item in theirs.get("me/tokens").json()["items"]] == ["revoked"]
