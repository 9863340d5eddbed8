"""Registers an issuer of user tokens."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.console import looking
from tests.console.conftest import OpenWindow
from tests.console.forms import control_plane, field

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

URL = "https://login.example.com/"


def test_an_issuer_is_registered_with_a_maximum_age_of_its_tokens(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = looking.opened(open_window, notes.account)
    window.open("/settings")
    window.click("button", "New issuer")
    window.click("dialog button", "Shared secret")
    for label, text in (
        ("Name", "login"),
        ("Issuer (iss)", URL),
        ("Audience (aud)", "app"),
        ("Shared secret", "s" * 32),
        ("Maximum token age (hours)", "1.5"),
    ):
        window.type(field(window, label, "dialog"), text)
    if folder := os.environ.get(looking.PICTURES_VARIABLE):
        looking.take_pictures(window, Path(folder), "new-issuer")
    assert looking.violations(window) == []
    window.click("dialog button.main", "Register")
    window.wait("!document.querySelector('dialog')")
    window.shows(URL, "[aria-label='Token issuers']")
    (issuer,) = control_plane(notes.caller.base, notes.account, "issuers")["items"]
    assert issuer["max_token_age_s"] == 5_400
