"""Links from e-mails and from the launcher that no longer work."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import pytest
from django.utils import timezone

from tests.chromium import Browser
from tests.console.looking import take_pictures, violations
from tests.console.window import Window
from tests.realtime.live.conftest import BackgroundProcesses

if TYPE_CHECKING:
    from tenants.models import User

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

UNKNOWN = "x" * 43
TITLES = {
    "sign-in": "This sign-in link has expired",
    "verify-email": "This verification link has expired",
    "reset-password": "This password link has expired",
    "invitation": "This invitation has expired",
}


@pytest.fixture
def guest(browser: Browser, server: str) -> Window:
    """A window in which nobody has signed in."""
    window = Window(browser.page(), server, "")
    window.page.call("Network.clearBrowserCookies")
    return window


def follow(window: Window, path: str, token: str) -> None:
    """Follow a link, from another page, as a fragment alone would not load the page again."""
    window.page.open("about:blank")
    window.page.open(f"{window.base}/{path}#token={token}")


def expired_token(user: User) -> str:
    from tenants import links
    from tenants.models import EmailProof, Purpose

    proof = links.issue(user.id, Purpose.SIGN_IN)
    EmailProof.objects.using("auth").filter(pk=proof.pk).update(expires_at=timezone.now())
    return links.token(Purpose.SIGN_IN, UUID(str(proof.id)))


@pytest.mark.parametrize("path", TITLES)
def test_a_malformed_link_is_reported_as_expired(guest: Window, path: str) -> None:
    for token in ("", "cut-off", "a" * 200):
        follow(guest, path, token)
        guest.shows(TITLES[path], "h1")


def test_an_expired_sign_in_link_offers_a_new_one(
    guest: Window, background: BackgroundProcesses, pictures: Path
) -> None:
    from tests.make import make_user

    user = make_user()
    for token in (expired_token(user), UNKNOWN):
        follow(guest, "sign-in", token)
        guest.shows(TITLES["sign-in"], "h1")
        guest.shows("Sign in with a password", "a")
    assert violations(guest) == []
    take_pictures(guest, pictures, "expired-link")
    guest.type("input[name=email]", user.email)
    guest.click("button", "Email me a new link")
    guest.shows("we have sent a new link", "[role=status]")


def test_the_page_of_an_unknown_link_offers_a_new_link(guest: Window) -> None:
    follow(guest, "verify-email", UNKNOWN)
    guest.click("button", "Verify the address")
    guest.shows(TITLES["verify-email"], "h1")
    follow(guest, "reset-password", UNKNOWN)
    guest.type("input[type=password]", "a long enough password")
    guest.click("button", "Set the password")
    guest.shows(TITLES["reset-password"], "h1")
    follow(guest, "invitation", UNKNOWN)
    guest.shows(TITLES["invitation"], "h1")
