"""Inviting people to a tenant, and joining one."""

from __future__ import annotations

import datetime

import psycopg
import pytest
from django.utils import timezone

from foundation.scope import scoped
from tenants.models import Invitation, Quota, Tenant, User
from tenants.roles import Role
from tests.browser import Browser, browser_of
from tests.caller import problem, with_key
from tests.mailbox import all_mails_to, next_mail
from tests.make import PASSWORD, TenantAccount, make_member, make_tenant, make_user, unique

pytestmark = pytest.mark.usefixtures("worker")


def _address() -> str:
    return unique("guest") + "@example.test"


def _invite(browser: Browser, account: TenantAccount, email: str, role: str = "developer") -> str:
    answer = browser.post(f"tenants/{account.slug}/invitations", {"email": email, "role": role})
    assert answer.status_code == 201, answer.text
    return next_mail(email, "Invitation to Test tenant").token


def _actions(browser: Browser, account: TenantAccount) -> list[str]:
    items = browser.get(f"tenants/{account.slug}/audit-log").json()["items"]
    return [item["action"] for item in items]


def test_a_new_user_joins_by_the_link_in_one_step(server: str) -> None:
    account, email = make_tenant(), _address()
    owner = browser_of(server, account.owner.email)
    token = _invite(owner, account, email)
    mail = next_mail(email, "Invitation to Test tenant")
    assert mail.page == "invitation"
    assert account.owner.email in mail.text

    guest = Browser(server)
    shown = guest.post("invitations:look-up", {"token": token}).json()
    assert shown["tenant"] == {"slug": account.slug, "name": "Test tenant"}
    assert (shown["role"], shown["email"], shown["has_account"]) == ("developer", email, False)

    body = {"email": email, "password": PASSWORD, "name": "Guest", "invitation": token}
    answer = guest.post("auth/sign-up", body)
    assert answer.status_code == 201, answer.text
    assert answer.json()["user"]["email_verified"] is True
    guest.csrf = answer.json()["csrf_token"]
    assert guest.signed_in
    assert [t["slug"] for t in guest.get("tenants").json()["items"]] == [account.slug]
    members = owner.get(f"tenants/{account.slug}/members").json()["items"]
    assert {m["email"]: m["role"] for m in members}[email] == "developer"
    assert owner.get(f"tenants/{account.slug}/invitations").json()["items"] == []
    assert _actions(owner, account)[:3] == [
        "member.added",
        "invitation.accepted",
        "invitation.created",
    ]
    problem(guest.post("invitations:look-up", {"token": token}), 410, "gone")


def test_a_sign_up_whose_session_cannot_be_opened_leaves_no_account(
    server: str, postgres_url: str
) -> None:
    account, email = make_tenant(), _address()
    owner = browser_of(server, account.owner.email)
    body = {"email": email, "password": PASSWORD, "invitation": _invite(owner, account, email)}
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute("REVOKE INSERT ON tenants_usersession FROM rb_app, rb_auth")
        try:
            problem(Browser(server).post("auth/sign-up", body), 500, "internal")
        finally:
            admin.execute("GRANT INSERT ON tenants_usersession TO rb_app, rb_auth")
    assert not User.objects.using("auth").filter(email=email).exists()
    assert Browser(server).post("auth/sign-up", body).status_code == 201


def test_a_repeated_sign_up_by_invitation_gets_the_first_answer_without_its_secret(
    server: str,
) -> None:
    account, email = make_tenant(), _address()
    owner = browser_of(server, account.owner.email)
    body = {"email": email, "password": PASSWORD, "invitation": _invite(owner, account, email)}
    guest = Browser(server)
    first, again = (guest.post("auth/sign-up", body, Idempotency_Key="join") for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == {**first.json(), "csrf_token": None}
    assert again.headers["Idempotency-Replayed"] == "true"


def test_signing_up_in_a_browser_ends_the_session_that_was_open_in_it(server: str) -> None:
    account, email = make_tenant(), _address()
    owner, shared = (browser_of(server, account.owner.email) for _ in range(2))
    old = Browser(server)
    old.cookie = str(shared.cookie)
    body = {"email": email, "password": PASSWORD, "invitation": _invite(owner, account, email)}
    assert shared.post("auth/sign-up", body).status_code == 201
    assert not old.signed_in
    assert shared.get("auth/session").json()["user"]["email"] == email


def test_a_user_with_an_account_signs_in_and_accepts(server: str) -> None:
    account, guest = make_tenant(), make_user()
    token = _invite(browser_of(server, account.owner.email), account, guest.email, "viewer")
    browser = browser_of(server, guest.email)
    assert browser.post("invitations:look-up", {"token": token}).json()["has_account"] is True
    body = {"email": guest.email, "password": "another password", "invitation": token}
    problem(Browser(server).post("auth/sign-up", body), 409, "conflict")

    answer = browser.post("invitations:accept", {"token": token})
    assert answer.json()["slug"] == account.slug
    assert browser.get(f"tenants/{account.slug}").status_code == 200
    problem(browser.post("invitations:accept", {"token": token}), 410, "gone")


def test_other_users_cannot_use_the_link(server: str) -> None:
    account, email = make_tenant(), _address()
    token = _invite(browser_of(server, account.owner.email), account, email)
    stranger = browser_of(server, make_user().email)
    problem(stranger.post("invitations:accept", {"token": token}), 403, "forbidden")
    body = {"email": _address(), "password": PASSWORD, "invitation": token}
    problem(Browser(server).post("auth/sign-up", body), 403, "forbidden")
    problem(stranger.get(f"tenants/{account.slug}"), 404, "not_found")
    assert not User.objects.using("auth").filter(email=body["email"]).exists()


def test_only_the_invited_user_gets_the_link(server: str) -> None:
    account, email = make_tenant(), _address()
    owner = browser_of(server, account.owner.email)
    token = _invite(owner, account, email)
    path = f"tenants/{account.slug}/invitations"
    item = owner.get(path).json()["items"][0]
    answer = owner.get(f"{path}/{item['id']}")
    assert token not in owner.get(path).text + answer.text
    assert (item["email"], item["state"], item["invited_by"]) == (
        email,
        "open",
        account.owner.email,
    )


def test_without_mail_admins_get_the_link_until_it_expires(
    server: str, settings_environment: pytest.MonkeyPatch
) -> None:
    settings_environment.setenv("RILLBASE_EMAIL_URL", "log://")
    account, email = make_tenant(), _address()
    owner = browser_of(server, account.owner.email)
    path = f"tenants/{account.slug}/invitations"
    created = owner.post(path, {"email": email, "role": "developer"}).json()
    token = created["link"].partition("/invitation#token=")[2]
    assert owner.get(path).json()["items"][0]["link"] == created["link"]
    assert token not in owner.get(f"tenants/{account.slug}/audit-log").text
    guest = Browser(server)
    assert guest.post("invitations:look-up", {"token": token}).json()["email"] == email
    with scoped(tenant_id=account.tenant.id):
        Invitation.objects.update(expires_at=timezone.now())
    assert owner.get(path).json()["items"][0]["link"] is None


def test_an_expired_invitation_is_refused_until_it_is_sent_again(server: str) -> None:
    account, email = make_tenant(), _address()
    owner = browser_of(server, account.owner.email)
    token = _invite(owner, account, email)
    with scoped(tenant_id=account.tenant.id):
        Invitation.objects.update(expires_at=timezone.now() - datetime.timedelta(seconds=1))
    guest = Browser(server)
    body = {"email": email, "password": PASSWORD, "invitation": token}
    problem(guest.post("invitations:look-up", {"token": token}), 410, "gone")
    problem(guest.post("auth/sign-up", body), 410, "gone")
    path = f"tenants/{account.slug}/invitations"
    item = owner.get(path).json()["items"][0]
    assert item["state"] == "expired"
    again = owner.post(f"{path}/{item['id']}:resend")
    assert again.json()["state"] == "open"
    next_mail(email, "Invitation to Test tenant", already=1)
    assert guest.post("auth/sign-up", body).status_code == 201


def test_a_revoked_invitation_is_void(server: str) -> None:
    account, email = make_tenant(), _address()
    owner = browser_of(server, account.owner.email)
    token = _invite(owner, account, email)
    path = f"tenants/{account.slug}/invitations"
    item = owner.get(path).json()["items"][0]
    assert owner.delete(f"{path}/{item['id']}").status_code == 204
    problem(owner.delete(f"{path}/{item['id']}"), 404, "not_found")
    problem(Browser(server).post("invitations:look-up", {"token": token}), 400, "invalid_body")
    assert _actions(owner, account)[0] == "invitation.deleted"


def test_a_tenant_that_is_being_deleted_accepts_no_members(server: str) -> None:
    account, guest = make_tenant(), make_user()
    owner = browser_of(server, account.owner.email)
    token = _invite(owner, account, guest.email)
    assert owner.delete(f"tenants/{account.slug}").status_code == 200
    answer = browser_of(server, guest.email).post("invitations:accept", {"token": token})
    problem(answer, 410, "tenant_deleted")


def test_members_and_invited_users_cannot_be_invited_again(server: str) -> None:
    account, email = make_tenant(), _address()
    owner = browser_of(server, account.owner.email)
    _invite(owner, account, email)
    path = f"tenants/{account.slug}/invitations"
    again = owner.post(path, {"email": email.upper(), "role": "viewer"})
    problem(again, 409, "conflict")
    member = make_member(account.tenant, Role.VIEWER)
    problem(owner.post(path, {"email": member.email, "role": "viewer"}), 409, "conflict")
    assert len(all_mails_to(email)) == 1


@pytest.mark.parametrize("role", [Role.VIEWER, Role.DEVELOPER])
def test_only_admins_manage_invitations(server: str, role: Role) -> None:
    account = make_tenant()
    member = make_member(account.tenant, role)
    browser = browser_of(server, member.email)
    path = f"tenants/{account.slug}/invitations"
    problem(browser.get(path), 403, "forbidden")
    problem(browser.post(path, {"email": _address(), "role": "viewer"}), 403, "forbidden")


def test_users_cannot_invite_above_their_own_role(server: str) -> None:
    account = make_tenant()
    admin = browser_of(server, make_member(account.tenant, Role.ADMIN).email)
    path = f"tenants/{account.slug}/invitations"
    problem(admin.post(path, {"email": _address(), "role": "owner"}), 403, "forbidden")
    assert admin.post(path, {"email": _address(), "role": "admin"}).status_code == 201
    owner = browser_of(server, account.owner.email)
    assert owner.post(path, {"email": _address(), "role": "owner"}).status_code == 201


def test_an_admin_key_invites_in_the_tenants_name(server: str) -> None:
    account, email = make_tenant(), _address()
    path = f"/api/v1/tenants/{account.slug}/invitations"
    key = with_key(server, account.admin_key)
    assert key.post(path, {"email": email, "role": "viewer"}).status_code == 201
    assert "An administrator of Test tenant" in next_mail(email, "Invitation to Test tenant").text


def test_another_tenants_invitations_do_not_exist(server: str) -> None:
    account, other = make_tenant(), make_tenant()
    owner, stranger = (browser_of(server, m.owner.email) for m in (account, other))
    _invite(owner, account, _address())
    item = owner.get(f"tenants/{account.slug}/invitations").json()["items"][0]
    problem(stranger.get(f"tenants/{account.slug}/invitations"), 404, "not_found")
    for call in (stranger.get, stranger.delete):
        problem(call(f"tenants/{other.slug}/invitations/{item['id']}"), 404, "not_found")
    resend = stranger.post(f"tenants/{other.slug}/invitations/{item['id']}:resend")
    problem(resend, 404, "not_found")


def test_open_invitations_count_against_the_quota_of_members(server: str) -> None:
    account = make_tenant()
    _allow_members(account.tenant, 3)
    owner = browser_of(server, account.owner.email)
    path = f"tenants/{account.slug}/invitations"
    guest = _address()
    token = _invite(owner, account, guest)
    _invite(owner, account, _address())
    last = _address()
    problem(owner.post(path, {"email": last, "role": "viewer"}), 403, "quota_exceeded")
    body = {"email": guest, "password": PASSWORD, "invitation": token}
    assert Browser(server).post("auth/sign-up", body).status_code == 201
    problem(owner.post(path, {"email": last, "role": "viewer"}), 403, "quota_exceeded")
    assert all_mails_to(last) == []


def _allow_members(tenant: Tenant, members: int) -> None:
    Quota(tenant=tenant, limits={"members": members}).save(using="staff")


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"email": "nobody", "role": "viewer"}, "/email"),
        ({"email": "a@example.test", "role": "emperor"}, "/role"),
        ({"email": "a@example.test"}, "/role"),
        ({"email": "a@example.test", "role": "viewer", "token": "x"}, "/token"),
        ({"email": "a@example.test\nBcc: b@example.test", "role": "viewer"}, "/email"),
        ({"email": 7, "role": ["viewer"]}, "/email"),
    ],
)
def test_malformed_invitations_are_refused(server: str, body: object, pointer: str) -> None:
    account = make_tenant()
    owner = browser_of(server, account.owner.email)
    rejection = problem(
        owner.post(f"tenants/{account.slug}/invitations", body), 400, "invalid_body"
    )
    assert pointer in [error["pointer"] for error in rejection["errors"]]
    assert owner.get(f"tenants/{account.slug}/invitations").json()["items"] == []


def test_an_invitation_does_not_allow_sign_up_where_it_is_closed(
    server: str, settings_environment: pytest.MonkeyPatch
) -> None:
    settings_environment.setenv("RILLBASE_SIGN_UP", "closed")
    account, email = make_tenant(), _address()
    token = _invite(browser_of(server, account.owner.email), account, email)
    body = {"email": email, "password": PASSWORD, "invitation": token}
    problem(Browser(server).post("auth/sign-up", body), 403, "sign_up_closed")


def test_an_invitation_is_enough_where_sign_up_is_by_invitation(
    server: str, settings_environment: pytest.MonkeyPatch
) -> None:
    settings_environment.setenv("RILLBASE_SIGN_UP", "invited")
    account, email = make_tenant(), _address()
    token = _invite(browser_of(server, account.owner.email), account, email)
    made_up = {"email": email, "password": PASSWORD, "invitation": "A" * 43}
    refusal = problem(Browser(server).post("auth/sign-up", made_up), 400, "invalid_body")
    assert refusal["errors"][0]["pointer"] == "/invitation"
    body = {"email": email, "password": PASSWORD, "invitation": token}
    assert Browser(server).post("auth/sign-up", body).status_code == 201
