"""Setting a new password with an emailed link."""

from __future__ import annotations

import datetime

import pytest
from django.utils import timezone

from tenants.models import EmailProof
from tests.browser import Browser, browser_of
from tests.caller import problem
from tests.mailbox import all_mails_to, next_mail
from tests.make import make_user, unique

pytestmark = pytest.mark.usefixtures("worker")

RESET = "Set a new password"
CHANGED = "Your password was changed"
NEW = "an entirely new password"


def _link(browser: Browser, email: str, *, already: int = 0) -> str:
    assert browser.post("auth/password-reset", {"email": email}).status_code == 202
    return next_mail(email, RESET, already=already).token


def test_a_link_sets_a_new_password_and_ends_all_sessions(server: str) -> None:
    user = make_user()
    signed_in = browser_of(server, user.email)
    browser = Browser(server)
    token = _link(browser, user.email)
    answer = browser.post("auth/password-reset:confirm", {"token": token, "password": NEW})
    assert (answer.status_code, answer.content) == (204, b"")
    assert not signed_in.signed_in
    problem(browser.log_in(user.email), 401, "invalid_credentials")
    assert browser.log_in(user.email, NEW).status_code == 200
    assert browser.address in next_mail(user.email, CHANGED).text


def test_every_address_gets_the_same_answer(server: str) -> None:
    known, inactive = make_user().email, make_user(is_active=False).email
    unknown = unique("nobody") + "@example.test"
    for email in (known, inactive, unknown):
        answer = Browser(server).post("auth/password-reset", {"email": email})
        assert (answer.status_code, answer.json()) == (202, {"email": email})
    assert [mail.subject for mail in all_mails_to(known)] == [RESET]
    assert all_mails_to(inactive) == []
    assert all_mails_to(unknown) == []


def test_a_link_works_once_and_ends_the_other_links(browser: Browser) -> None:
    user = make_user()
    first = _link(browser, user.email)
    second = _link(browser, user.email, already=1)
    path = "auth/password-reset:confirm"
    assert browser.post(path, {"token": first, "password": NEW}).status_code == 204
    for token in (first, second):
        answer = browser.post(path, {"token": token, "password": "yet another password"})
        assert problem(answer, 400, "invalid_body")["errors"][0]["code"] == "invalid_token"
    assert browser.log_in(user.email, NEW).status_code == 200


def test_a_link_is_good_for_an_hour(browser: Browser) -> None:
    user = make_user()
    token = _link(browser, user.email)
    proofs = EmailProof.objects.using("auth").filter(user=user)
    left = proofs.get().expires_at - timezone.now()
    assert datetime.timedelta(minutes=59) < left <= datetime.timedelta(hours=1)
    proofs.update(expires_at=timezone.now() - datetime.timedelta(seconds=1))
    body = {"token": token, "password": NEW}
    problem(browser.post("auth/password-reset:confirm", body), 410, "gone")


def test_a_weak_password_does_not_use_the_link_up(browser: Browser) -> None:
    user = make_user()
    token = _link(browser, user.email)
    answer = browser.post("auth/password-reset:confirm", {"token": token, "password": "short"})
    assert problem(answer, 400, "invalid_body")["errors"][0]["pointer"] == "/password"
    body = {"token": token, "password": NEW}
    assert browser.post("auth/password-reset:confirm", body).status_code == 204


def test_a_link_dies_when_the_password_is_changed_in_the_console(server: str) -> None:
    user = make_user()
    token = _link(Browser(server), user.email)
    browser = browser_of(server, user.email)
    body = {"current_password": "correct horse battery", "new_password": NEW}
    assert browser.post("me/password", body).status_code == 200
    stale = {"token": token, "password": "stolen in the meantime"}
    problem(browser.post("auth/password-reset:confirm", stale), 400, "invalid_body")


def test_a_deactivated_user_cannot_sign_in_by_a_link(browser: Browser) -> None:
    user = make_user()
    token = _link(browser, user.email)
    user.is_active = False
    user.save(using="staff")
    body = {"token": token, "password": NEW}
    problem(browser.post("auth/password-reset:confirm", body), 400, "invalid_body")


def test_a_reset_verifies_the_address(browser: Browser) -> None:
    user = make_user(is_verified=False)
    token = _link(browser, user.email)
    browser.post("auth/password-reset:confirm", {"token": token, "password": NEW})
    assert browser.log_in(user.email, NEW).json()["user"]["email_verified"] is True
