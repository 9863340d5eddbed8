"""The link printed at startup: valid for one sign-in, for a short time, from the same machine."""

from __future__ import annotations

import datetime

import pytest

from foundation import request_context
from foundation.environment import environment
from foundation.errors import Forbidden
from tenants.actions import local_links
from tenants.models import EmailProof, Purpose, User
from tests.browser import Browser
from tests.caller import problem
from tests.make import make_user


def link_for(user: User) -> str:
    url = local_links.do_issue(user)
    address, _, token = url.partition("#token=")
    assert address == f"{environment().rillbase_public_url.rstrip('/')}/sign-in"
    return token


def test_it_signs_in_once(browser: Browser, server: str) -> None:
    user = make_user()
    token = link_for(user)
    answer = browser.post("auth/login-link", {"token": token})
    assert answer.status_code == 200, answer.text
    assert browser.get("auth/session").json() == answer.json()
    assert answer.json()["user"]["email"] == user.email
    problem(Browser(server).post("auth/login-link", {"token": token}), 410, "gone")


def test_it_ends_after_a_quarter_of_an_hour(browser: Browser) -> None:
    user = make_user()
    token = link_for(user)
    proofs = EmailProof.objects.using("auth").filter(user=user, purpose=Purpose.SIGN_IN)
    proof = proofs.get()
    assert proof.expires_at - proof.created_at < datetime.timedelta(minutes=16)
    proofs.update(expires_at=proof.created_at)
    problem(browser.post("auth/login-link", {"token": token}), 410, "gone")


def test_a_mailed_token_does_not_sign_in(browser: Browser) -> None:
    problem(browser.post("auth/login-link", {"token": "x" * 43}), 400, "invalid_body")


@pytest.mark.parametrize("address", ["192.0.2.7", "::ffff:192.0.2.7", ""])
def test_it_is_for_the_machine_itself(address: str) -> None:
    token = request_context.client_address.set(address)
    try:
        with pytest.raises(Forbidden):
            local_links.require_local_caller()
    finally:
        request_context.client_address.reset(token)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.4.5.6", "::1", "::ffff:127.0.0.1"])
def test_every_loopback_address_is_the_machine_itself(address: str) -> None:
    token = request_context.client_address.set(address)
    try:
        local_links.require_local_caller()
    finally:
        request_context.client_address.reset(token)
