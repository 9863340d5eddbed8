"""Signing in and out, as seen by users and by attackers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.contrib.auth.hashers import Argon2PasswordHasher

from tenants.credentials import sessions
from tenants.models import User
from tests.browser import Browser, browser_of
from tests.caller import problem, with_key
from tests.make import PASSWORD, make_tenant, make_user, unique

WRONG = "not the right password"


def test_a_login_opens_a_session_that_a_logout_ends(browser: Browser) -> None:
    user = make_user()
    answer = browser.log_in(user.email.upper())
    assert answer.status_code == 200, answer.text
    assert answer.json()["user"]["email"] == user.email
    session = browser.get("auth/session").json()
    assert session == answer.json()
    cookie = browser.cookie
    assert cookie is not None

    out = browser.post("auth/logout")
    assert (out.status_code, out.content) == (204, b"")
    assert browser.cookie is None
    browser.cookie = cookie
    problem(browser.get("auth/session"), 401, "invalid_credentials")


def test_scripts_and_other_sites_cannot_use_the_cookie(browser: Browser) -> None:
    header = browser.log_in(make_user().email).headers["Set-Cookie"]
    assert "HttpOnly" in header
    assert "SameSite=Lax" in header
    assert "Path=/" in header


def test_a_caller_without_a_session_is_not_signed_in(browser: Browser) -> None:
    problem(browser.get("auth/session"), 401, "unauthenticated")
    problem(browser.get("me"), 401, "unauthenticated")
    browser.cookie = "made-up"
    problem(browser.get("auth/session"), 401, "invalid_credentials")


def test_logging_out_without_a_session_is_no_error(browser: Browser) -> None:
    assert browser.post("auth/logout").status_code == 204
    browser.cookie = "made-up"
    assert browser.post("auth/logout").status_code == 204
    assert browser.cookie is None


def test_wrong_password_unknown_address_and_inactive_user_get_equal_responses(server: str) -> None:
    known, inactive = make_user(), make_user(is_active=False)
    answers = [
        Browser(server).log_in(known.email, WRONG),
        Browser(server).log_in(unique("nobody") + "@example.test", PASSWORD),
        Browser(server).log_in(inactive.email, PASSWORD),
    ]
    bodies = []
    for answer in answers:
        body = problem(answer, 401, "invalid_credentials")
        del body["request_id"]
        bodies.append(body)
        assert "Set-Cookie" not in answer.headers
    assert bodies[0] == bodies[1] == bodies[2]


def test_every_login_costs_exactly_one_password_hash(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hash takes a hundred times as long as everything else, so skipping it would reveal which
    accounts exist.
    """
    hashes: list[str] = []
    for name in ("encode", "verify"):
        monkeypatch.setattr(Argon2PasswordHasher, name, _counting(name, hashes))
    emails = [
        make_user().email,
        make_user(is_active=False).email,
        make_user(is_verified=False).email,
        unique("nobody") + "@example.test",
    ]
    for email in emails:
        hashes.clear()
        Browser(server).log_in(email, WRONG)
        assert len(hashes) == 1, (email, hashes)


def _counting(name: str, calls: list[str]) -> Callable[..., object]:
    original: Callable[..., object] = getattr(Argon2PasswordHasher, name)

    def counting(*args: object) -> object:
        calls.append(name)
        return original(*args)

    return counting


def test_an_account_whose_address_is_not_verified_cannot_be_used(browser: Browser) -> None:
    user = make_user(is_verified=False)
    problem(browser.log_in(user.email), 403, "email_not_verified")
    problem(browser.log_in(user.email, WRONG), 401, "invalid_credentials")


def test_a_login_never_continues_a_session_fixed_by_an_attacker(browser: Browser) -> None:
    user = make_user()
    browser.log_in(user.email)
    planted = browser.cookie
    assert planted is not None
    browser.log_in(user.email)
    assert browser.cookie != planted
    browser.cookie = planted
    assert not browser.signed_in


def test_changing_calls_need_the_csrf_token_of_the_session(server: str) -> None:
    browser = browser_of(server, make_user().email)
    other = browser_of(server, make_user().email)
    for token in ("", "wrong", other.csrf, "é"):
        headers = {sessions.CSRF_HEADER: token.encode().decode("latin-1")}
        problem(browser.call("PATCH", "me", {"name": "x"}, **headers), 403, "csrf_failed")
        problem(browser.call("POST", "auth/logout", {}, **headers), 403, "csrf_failed")
    assert browser.signed_in
    assert browser.patch("me", {"name": "x"}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost.evil.example"]
)
def test_pages_of_other_origins_can_do_nothing(server: str, origin: str) -> None:
    user = make_user()
    stranger = Browser(server)
    login = {"email": user.email, "password": PASSWORD}
    problem(stranger.post("auth/login", login, Origin=origin), 403, "csrf_failed")
    browser = browser_of(server, user.email)
    problem(browser.patch("me", {"name": "x"}, Origin=origin), 403, "csrf_failed")
    problem(browser.post("auth/logout", Origin=origin), 403, "csrf_failed")
    assert browser.signed_in


def test_a_form_of_another_site_is_not_read(browser: Browser) -> None:
    answer = browser.post(
        "auth/login", {"email": "a@example.test"}, Content_Type="application/x-www-form-urlencoded"
    )
    problem(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        ({"password": "x"}, "/email", "required"),
        ({"email": "a@example.test"}, "/password", "required"),
        ({"email": "no address", "password": "x"}, "/email", "invalid"),
        ({"email": ["a@example.test"], "password": "x"}, "/email", "invalid"),
        ({"email": "a@example.test", "password": {"$ne": ""}}, "/password", "invalid"),
        ({"email": "a@example.test", "password": None}, "/password", "null"),
        ({"email": "a@example.test", "password": "x" * 201}, "/password", "max_length"),
        ({"email": "a" * 300 + "@example.test", "password": "x"}, "/email", "max_length"),
        ({"email": "a@example.test", "password": "x", "otp": "1"}, "/otp", "unknown_field"),
    ],
)
def test_malformed_logins_are_refused_by_name(
    browser: Browser, body: object, pointer: str, code: str
) -> None:
    rejection = problem(browser.post("auth/login", body), 400, "invalid_body")["errors"]
    assert (pointer, code) in {(error["pointer"], error["code"]) for error in rejection}


def test_login_answers_other_methods_as_the_rest_of_the_api_does(browser: Browser) -> None:
    problem(browser.get("auth/login"), 405, "method_not_allowed")


def test_guessing_one_users_password_is_stopped_from_any_address(server: str) -> None:
    email = unique("victim") + "@example.test"
    answers = [Browser(server).log_in(email, WRONG).status_code for _ in range(17)]
    assert answers[0] == 401
    assert answers[-1] == 429
    refusal = problem(Browser(server).log_in(email, WRONG), 429, "rate_limited")
    assert refusal["status"] == 429
    assert Browser(server).log_in(make_user().email).status_code == 200


def test_guessing_from_one_address_is_stopped_for_any_user(browser: Browser) -> None:
    statuses = []
    for _ in range(100):  # a slow machine regains attempts while it uses others
        statuses.append(browser.log_in(unique("v") + "@example.test", WRONG).status_code)
        if statuses[-1] == 429:
            break
    assert statuses[-1] == 429


def test_a_repeated_login_call_hands_out_no_second_secret(browser: Browser) -> None:
    user = make_user()
    body = {"email": user.email, "password": PASSWORD}
    first = browser.post("auth/login", body, Idempotency_Key="login-1")
    assert first.json()["csrf_token"]
    again = browser.post("auth/login", body, Idempotency_Key="login-1")
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json()["csrf_token"] is None
    assert "Set-Cookie" not in again.headers


def test_people_see_where_they_are_signed_in_and_end_it(server: str) -> None:
    user = make_user()
    here, there = browser_of(server, user.email), browser_of(server, user.email)
    items = here.get("me/sessions").json()["items"]
    assert [item["current"] for item in items] == [False, True]
    assert [item["address"] for item in items] == [there.address, here.address]
    assert items[0]["user_agent"] == "Test browser"
    assert "token" not in str(items)

    assert here.delete(f"me/sessions/{items[0]['id']}").status_code == 204
    assert not there.signed_in
    assert here.signed_in
    problem(here.delete(f"me/sessions/{items[0]['id']}"), 404, "not_found")

    assert here.delete(f"me/sessions/{items[1]['id']}").status_code == 204
    assert here.cookie is None
    assert not here.signed_in


def test_all_other_sessions_end_at_once(server: str) -> None:
    user = make_user()
    here, *others = [browser_of(server, user.email) for _ in range(3)]
    assert here.delete("me/sessions").json() == {"ended": 2}
    assert [other.signed_in for other in others] == [False, False]
    assert here.signed_in


def test_users_cannot_see_or_end_others_sessions(server: str) -> None:
    victim = browser_of(server, make_user().email)
    theirs = victim.get("me/sessions").json()["items"][0]["id"]
    stranger = browser_of(server, make_user().email)
    assert theirs not in stranger.get("me/sessions").text
    problem(stranger.delete(f"me/sessions/{theirs}"), 404, "not_found")
    assert victim.signed_in


def test_keys_and_tokens_cannot_manage_sessions(server: str) -> None:
    account = make_tenant()
    problem(with_key(server, account.admin_key).get("/api/v1/me/sessions"), 403, "forbidden")
    browser = browser_of(server, account.owner.email)
    token = browser.post("me/tokens", {"name": "script"}).json()["secret"]
    script = with_key(server, token)
    problem(script.get("/api/v1/me/sessions"), 403, "forbidden")
    problem(script.delete("/api/v1/me/sessions"), 403, "forbidden")
    who = script.get("/api/v1/auth/session").json()
    assert (who["user"]["email"], who["csrf_token"]) == (account.owner.email, None)
    assert browser.signed_in


def test_the_last_login_of_a_user_is_recorded(browser: Browser) -> None:
    user = make_user()
    browser.log_in(user.email)
    assert User.objects.using("auth").get(pk=user.pk).last_login is not None
