"""Users' own accounts."""

from __future__ import annotations

import pytest

from tests.browser import Browser, browser_of
from tests.caller import problem, with_key
from tests.mailbox import all_mails_to, next_mail
from tests.make import PASSWORD, make_tenant, make_user, unique

pytestmark = pytest.mark.usefixtures("worker")

CHANGE = "Confirm your new email address"
NEW = "an entirely new password"


def test_people_read_and_rename_themselves(server: str) -> None:
    user = make_user()
    browser = browser_of(server, user.email)
    answer = browser.get("me")
    assert answer.json()["email"] == user.email
    changed = browser.patch("me", {"name": "Ada"}, If_Match=answer.headers["ETag"])
    assert changed.json()["name"] == "Ada"
    again = browser.patch("me", {"name": "Eve"}, If_Match=answer.headers["ETag"])
    problem(again, 412, "precondition_failed")
    assert browser.get("me").json()["name"] == "Ada"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"is_staff": True}, "/is_staff"),
        ({"email_verified": True}, "/email_verified"),
        ({"name": 7, "id": "x"}, "/id"),
        ({"name": "a\u0007b"}, "/name"),
        ({"name": {}}, "/name"),
        ({"email": "nothing"}, "/email"),
        ({"email": "a@example.test"}, "/current_password"),
    ],
)
def test_malformed_changes_are_refused(server: str, body: object, pointer: str) -> None:
    browser = browser_of(server, make_user().email)
    before = browser.get("me").json()
    error = problem(browser.patch("me", body), 400, "invalid_body")
    assert error["errors"][0]["pointer"] == pointer
    assert browser.get("me").json() == before


def test_a_new_address_takes_effect_once_confirmed(server: str) -> None:
    user = make_user()
    browser = browser_of(server, user.email)
    new = unique("new") + "@example.test"
    body = {"email": new.upper(), "current_password": PASSWORD}
    waiting = browser.patch("me", body).json()
    assert (waiting["email"], waiting["pending_email"]) == (user.email, new)
    problem(Browser(server).log_in(new), 401, "invalid_credentials")

    token = next_mail(new, CHANGE).token
    assert browser.post("auth/verify-email", {"token": token}).json() == {"email": new}
    now = browser.get("me").json()
    assert (now["email"], now["pending_email"]) == (new, None)
    browser_of(server, new)
    problem(Browser(server).log_in(user.email), 401, "invalid_credentials")
    assert new in next_mail(user.email, "Your email address was changed").text


def test_a_new_address_needs_the_password(server: str) -> None:
    browser = browser_of(server, make_user().email)
    new = unique("new") + "@example.test"
    answer = browser.patch("me", {"email": new, "current_password": "a wrong guess"})
    assert problem(answer, 400, "invalid_body")["errors"][0]["code"] == "wrong_password"
    assert browser.get("me").json()["pending_email"] is None
    assert all_mails_to(new) == []


def test_changing_the_address_does_not_reveal_whether_it_is_taken(server: str) -> None:
    taken = make_user()
    browser = browser_of(server, make_user().email)
    body = {"email": taken.email, "current_password": PASSWORD}
    assert browser.patch("me", body).json()["pending_email"] == taken.email
    token = next_mail(taken.email, CHANGE).token
    problem(browser.post("auth/verify-email", {"token": token}), 409, "conflict")
    browser_of(server, taken.email)


def test_asking_again_replaces_the_link_and_the_present_address_drops_it(server: str) -> None:
    user = make_user()
    browser = browser_of(server, user.email)
    first, second = (unique("new") + "@example.test" for _ in range(2))
    browser.patch("me", {"email": first, "current_password": PASSWORD})
    stale = next_mail(first, CHANGE).token
    browser.patch("me", {"email": second, "current_password": PASSWORD})
    problem(browser.post("auth/verify-email", {"token": stale}), 400, "invalid_body")
    dropped = browser.patch("me", {"email": user.email, "current_password": PASSWORD}).json()
    assert dropped["pending_email"] is None
    token = next_mail(second, CHANGE).token
    problem(browser.post("auth/verify-email", {"token": token}), 400, "invalid_body")
    assert browser.get("me").json()["email"] == user.email


def test_a_new_password_ends_the_other_sessions_and_is_announced_by_mail(server: str) -> None:
    user = make_user()
    here, there = browser_of(server, user.email), browser_of(server, user.email)
    answer = here.post("me/password", {"current_password": PASSWORD, "new_password": NEW})
    assert answer.json() == {"ended_sessions": 1, "revoked_tokens": 0}
    assert here.signed_in
    assert not there.signed_in
    assert here.address in next_mail(user.email, "Your password was changed").text
    problem(Browser(server).log_in(user.email), 401, "invalid_credentials")
    browser_of(server, user.email, NEW)


def test_a_pending_address_does_not_survive_a_new_password(server: str) -> None:
    browser = browser_of(server, make_user().email)
    new = unique("thief") + "@example.test"
    browser.patch("me", {"email": new, "current_password": PASSWORD})
    token = next_mail(new, CHANGE).token
    browser.post("me/password", {"current_password": PASSWORD, "new_password": NEW})
    problem(browser.post("auth/verify-email", {"token": token}), 400, "invalid_body")


def test_tokens_outlive_a_new_password_by_default(server: str) -> None:
    account = make_tenant()
    browser = browser_of(server, account.owner.email)
    tokens = [
        browser.post("me/tokens", {"name": "all"}).json()["secret"],
        browser.post(f"tenants/{account.slug}/tokens", {"name": "one"}).json()["secret"],
    ]
    browser.post("me/password", {"current_password": PASSWORD, "new_password": NEW})
    scripts = [with_key(server, token) for token in tokens]
    assert [script.get("/api/v1/me").status_code for script in scripts] == [200, 200]
    body = {"current_password": NEW, "new_password": PASSWORD, "revoke_tokens": True}
    assert browser.post("me/password", body).json()["revoked_tokens"] == 2
    log = browser.get(f"tenants/{account.slug}/audit-log").json()["items"]
    assert log[0]["action"] == "token.revoked"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"current_password": "wrong guess", "new_password": NEW}, "/current_password"),
        ({"current_password": PASSWORD, "new_password": "short"}, "/new_password"),
        ({"current_password": PASSWORD}, "/new_password"),
        ({"current_password": PASSWORD, "new_password": NEW, "x": 1}, "/x"),
        ({"current_password": PASSWORD, "new_password": [NEW]}, "/new_password"),
    ],
)
def test_a_refused_password_change_changes_nothing(server: str, body: object, pointer: str) -> None:
    user = make_user()
    browser, other = browser_of(server, user.email), browser_of(server, user.email)
    error = problem(browser.post("me/password", body), 400, "invalid_body")
    assert error["errors"][0]["pointer"] == pointer
    assert other.signed_in
    browser_of(server, user.email)


def test_a_stolen_session_cannot_guess_the_password_for_long(server: str) -> None:
    browser = browser_of(server, make_user().email)
    body = {"current_password": "a guess", "new_password": NEW}
    statuses = [browser.post("me/password", body).status_code for _ in range(11)]
    assert statuses == [400] * 10 + [429]


def test_a_personal_token_reads_its_owner_and_changes_nothing(server: str) -> None:
    user = make_user()
    browser = browser_of(server, user.email)
    script = with_key(server, browser.post("me/tokens", {"name": "x"}).json()["secret"])
    assert script.get("/api/v1/me").json()["email"] == user.email
    problem(script.patch("/api/v1/me", {"name": "x"}), 403, "forbidden")
    body = {"current_password": PASSWORD, "new_password": NEW}
    problem(script.post("/api/v1/me/password", body), 403, "forbidden")
