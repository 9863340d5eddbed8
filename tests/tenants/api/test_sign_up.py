"""Creating an account, and verifying its email address."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from django.utils import timezone

from foundation.models import OutboxTask
from tenants.models import EmailProof, User
from tests.browser import Browser, browser_of
from tests.caller import problem
from tests.mailbox import all_mails_to, next_mail
from tests.make import PASSWORD, make_user, unique

pytestmark = pytest.mark.usefixtures("worker")

VERIFY = "Confirm your email address"
TAKEN = "You already have an account"


def _address() -> str:
    return unique("new") + "@example.test"


def _sign_up(browser: Browser, email: str, password: str = PASSWORD) -> dict[str, object]:
    answer = browser.post("auth/sign-up", {"email": email, "password": password, "name": "New"})
    assert answer.status_code == 202, answer.text
    body: dict[str, object] = answer.json()
    return body


def test_an_account_opens_with_the_link_in_the_mail(browser: Browser) -> None:
    email = _address()
    assert _sign_up(browser, email) == {"email": email}
    problem(browser.log_in(email), 403, "email_not_verified")
    mail = next_mail(email, VERIFY)
    assert mail.page == "verify-email"
    assert browser.post("auth/verify-email", {"token": mail.token}).json() == {"email": email}
    user = browser.log_in(email).json()["user"]
    assert (user["email"], user["name"], user["email_verified"]) == (email, "New", True)


def test_a_mail_has_its_link_as_text_and_as_a_button(browser: Browser) -> None:
    email = _address()
    _sign_up(browser, email)
    mail = next_mail(email, VERIFY)
    assert f'<a href="http://localhost/verify-email#token={mail.token}"' in mail.html
    assert email in mail.text


def test_a_taken_address_gets_the_same_answer_and_its_owner_a_mail(browser: Browser) -> None:
    owner = make_user()
    new = _address()
    assert _sign_up(browser, owner.email, "another password") == {"email": owner.email}
    assert _sign_up(browser, new) == {"email": new}
    assert "#token=" not in next_mail(owner.email, TAKEN).text
    browser_of(browser.base, owner.email, PASSWORD)
    problem(
        Browser(browser.base).log_in(owner.email, "another password"), 401, "invalid_credentials"
    )


def test_the_latest_sign_up_counts_until_the_address_is_verified(server: str) -> None:
    """A stranger who signs up first must not own the account that the owner of the address
    confirms.
    """
    email = _address()
    _sign_up(Browser(server), email, "the stranger's password")
    strangers_mail = next_mail(email, VERIFY)
    _sign_up(Browser(server), email, "the owner's password")
    owners_mail = next_mail(email, VERIFY, already=1)
    browser = Browser(server)
    answer = browser.post("auth/verify-email", {"token": strangers_mail.token})
    assert problem(answer, 400, "invalid_body")["errors"][0]["code"] == "invalid_token"
    assert browser.post("auth/verify-email", {"token": owners_mail.token}).status_code == 200
    problem(Browser(server).log_in(email, "the stranger's password"), 401, "invalid_credentials")
    browser_of(server, email, "the owner's password")


def test_signing_up_never_touches_an_account_of_staff(browser: Browser) -> None:
    staff = make_user(is_staff=True, is_verified=False)
    _sign_up(browser, staff.email, "a stranger's password")
    token = next_mail(staff.email, VERIFY).token
    assert browser.post("auth/verify-email", {"token": token}).status_code == 200
    problem(browser.log_in(staff.email, "a stranger's password"), 401, "invalid_credentials")
    browser_of(browser.base, staff.email)


def test_a_link_works_once(browser: Browser) -> None:
    email = _address()
    _sign_up(browser, email)
    token = next_mail(email, VERIFY).token
    assert browser.post("auth/verify-email", {"token": token}).status_code == 200
    problem(browser.post("auth/verify-email", {"token": token}), 410, "gone")


def test_a_link_expires(browser: Browser) -> None:
    email = _address()
    _sign_up(browser, email)
    token = next_mail(email, VERIFY).token
    passed = timezone.now() - datetime.timedelta(seconds=1)
    EmailProof.objects.using("auth").filter(user__email=email).update(expires_at=passed)
    problem(browser.post("auth/verify-email", {"token": token}), 410, "gone")
    problem(browser.log_in(email), 403, "email_not_verified")


def test_the_mail_is_sent_again_on_request_and_to_those_who_wait_for_it_only(
    server: str,
) -> None:
    waiting, verified, nobody = make_user(is_verified=False).email, make_user().email, _address()
    for email in (waiting, verified, nobody):
        answer = Browser(server).post("auth/verify-email:resend", {"email": email})
        assert (answer.status_code, answer.json()) == (202, {"email": email})
    assert [mail.subject for mail in all_mails_to(waiting)] == [VERIFY]
    assert all_mails_to(verified) == []
    assert all_mails_to(nobody) == []


@pytest.mark.parametrize("token", ["", "x", "A" * 43, "A" * 200, 7, None, ["A" * 43]])
def test_forged_tokens_are_rejected(browser: Browser, token: object) -> None:
    body = {"token": token}
    error = problem(browser.post("auth/verify-email", body), 400, "invalid_body")
    assert error["errors"][0]["pointer"] == "/token"


def test_a_link_is_valid_only_for_its_purpose(browser: Browser) -> None:
    email = _address()
    _sign_up(browser, email)
    token = next_mail(email, VERIFY).token
    body = {"token": token, "password": "a stolen account"}
    problem(browser.post("auth/password-reset:confirm", body), 400, "invalid_body")
    problem(browser.post("invitations:look-up", {"token": token}), 400, "invalid_body")


@pytest.mark.parametrize(
    ("password", "code"),
    [
        ("short", "password_too_short"),
        ("password1234", "password_too_common"),
        ("x" * 201, "max_length"),
        ("", "blank"),
    ],
)
def test_weak_passwords_are_rejected_with_a_pointer(
    browser: Browser, password: str, code: str
) -> None:
    email = _address()
    answer = browser.post("auth/sign-up", {"email": email, "password": password})
    rejection = problem(answer, 400, "invalid_body")["errors"]
    assert ("/password", code) in {(error["pointer"], error["code"]) for error in rejection}
    assert not User.objects.using("auth").filter(email=email).exists()


def test_a_password_must_not_be_the_address(browser: Browser) -> None:
    email = _address()
    answer = browser.post("auth/sign-up", {"email": email, "password": email})
    assert problem(answer, 400, "invalid_body")["errors"][0]["code"] == "password_too_similar"


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"is_staff": True}, "/is_staff"),
        ({"name": "a\nb"}, "/name"),
        ({"name": "x" * 101}, "/name"),
        ({"invitation": "x"}, "/invitation"),
        ({"email": "a@example.test\r\nBcc: b@example.test"}, "/email"),
    ],
)
def test_malformed_sign_ups_are_refused(
    browser: Browser, body: dict[str, object], pointer: str
) -> None:
    full = {"email": _address(), "password": PASSWORD, **body}
    rejection = problem(browser.post("auth/sign-up", full), 400, "invalid_body")
    assert [error["pointer"] for error in rejection["errors"]] == [pointer]


def test_mails_to_one_address_are_limited(server: str) -> None:
    email = _address()
    path = "auth/password-reset"
    statuses = [Browser(server).post(path, {"email": email}).status_code for _ in range(6)]
    assert statuses == [202] * 5 + [429]


@pytest.mark.parametrize("mode", ["invited", "closed"])
def test_sign_up_can_be_shut(
    browser: Browser, settings_environment: pytest.MonkeyPatch, mode: str
) -> None:
    settings_environment.setenv("RILLBASE_SIGN_UP", mode)
    email = _address()
    answer = browser.post("auth/sign-up", {"email": email, "password": PASSWORD})
    problem(answer, 403, "sign_up_closed")
    assert not User.objects.using("auth").filter(email=email).exists()


def test_no_token_of_a_link_is_ever_in_the_outbox(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    email = _address()
    arguments_of_tasks: list[str] = []
    save = OutboxTask.save

    def record_arguments(row: OutboxTask, *args: Any, **options: Any) -> None:
        arguments_of_tasks.append(str(row.arguments))
        save(row, *args, **options)

    monkeypatch.setattr(OutboxTask, "save", record_arguments)
    _sign_up(browser, email)
    token = next_mail(email, VERIFY).token
    assert any(email in arguments for arguments in arguments_of_tasks)
    assert not any(token in arguments for arguments in arguments_of_tasks)
