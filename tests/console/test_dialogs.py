"""A single key press never loses typed text or a secret that is shown once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.caller import with_key
from tests.console.conftest import OpenWindow
from tests.console.looking import take_pictures, violations

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient
    from tests.make import TenantAccount

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


def control_plane(notes: CollectionClient, path: str) -> Any:
    """Call the tenant's control plane."""
    caller = with_key(notes.caller.base, notes.account.admin_key)
    answer = caller.get(f"/api/v1/tenants/{notes.account.slug}/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_the_first_escape_keeps_a_document_that_was_typed(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open(f"/collections/{notes.name}")
    window.click("button", "New")
    window.write("dialog .editor-host", '{"title": "Typed"}')
    window.press("Escape")
    window.shows("What you entered is not saved", "dialog [role=alert]")
    window.press("Escape")
    window.wait("!document.querySelector('dialog')")
    assert notes.ids() == ["n0", "n1", "n2"]


def test_a_secret_is_not_closed_before_it_was_copied(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open("/keys")
    window.click("button", "New key")
    window.type("dialog input.input", "Reports")
    window.click("dialog label", "analytics:read")
    window.evaluate(
        "(() => { const s = document.querySelector('dialog select');"
        "Object.getOwnPropertyDescriptor(HTMLSelectElement.prototype, 'value').set.call(s, '30');"
        "s.dispatchEvent(new Event('change', {bubbles: true})); })()"
    )
    window.click("dialog button.main", "Create key")
    window.shows("rbk_", "dialog pre")
    window.press("Escape")
    window.shows("was not copied", "dialog [role=alert]")
    window.shows("rbk_", "dialog pre")
    keys = control_plane(notes, "api-keys")["items"]
    (key,) = [key for key in keys if key["name"] == "Reports"]
    assert "analytics:read" in key["scopes"]
    assert key["expires_at"] is not None


def test_a_suggested_schema_is_shown_before_it_is_saved(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open(f"/collections/{notes.name}/schema")
    window.click("button", "Infer from documents")
    window.shows("Review the schema, then save", ".toast")
    window.wait(
        "[...document.querySelectorAll('.schema-row .input')].some(e => e.value === 'rank')"
    )
    assert control_plane(notes, f"collections/{notes.name}")["schema"] is None
    window.click("button", "Save")
    window.shows("Schema saved", ".toast")
    assert control_plane(notes, f"collections/{notes.name}")["schema"]["properties"]["rank"] == {
        "type": "number"
    }


def test_the_audit_log_shows_one_kind_of_action(
    open_window: OpenWindow, dedicated: TenantAccount
) -> None:
    window = open_window(dedicated)
    window.open("/keys")
    window.click("button", "New key")
    window.type("dialog input.input", "Audited")
    window.click("dialog button.main", "Create key")
    window.shows("rbk_", "dialog pre")
    window.open("/audit")
    window.type("input[aria-label=Action]", "api_key.created")
    window.press("Enter")
    window.wait(
        "[...document.querySelectorAll('tbody tr td:nth-child(2)')].length > 0 &&"
        "[...document.querySelectorAll('tbody tr td:nth-child(2)')]"
        ".every((cell) => cell.innerText === 'api_key.created')"
    )
    for start in ("api_key", dedicated.owner.email[:8]):
        label = "Action" if start == "api_key" else "Actor"
        window.type(f"input[aria-label={label}]", start)
        window.press("Enter")
        window.shows("api_key.created", "tbody")
    assert "api_key.created" in window.page.evaluate(
        "[...document.querySelectorAll('datalist option')].map((option) => option.value)"
    )
    window.type("input[aria-label=Action]", "no.such_action")
    window.press("Enter")
    window.shows("No matching entries", ".empty")


def test_control_enter_submits_a_form_from_its_editor(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open(f"/collections/{notes.name}")
    window.click("button.main", "New")
    window.write("dialog .editor-host", '{"title": "By keyboard"}')
    window.press("Enter", ctrl=True)
    window.wait("!document.querySelector('dialog[open]')")
    window.shows("By keyboard", "[role=row]")


def test_an_installation_without_mail_shows_the_link_of_an_invitation(
    open_window: OpenWindow,
    notes: CollectionClient,
    settings_environment: pytest.MonkeyPatch,
    pictures: Path,
) -> None:
    from tests.make import unique

    settings_environment.setenv("RILLBASE_EMAIL_URL", "log://")
    email = f"{unique('guest')}@example.test"
    window = open_window(notes.account)
    window.open("/members")
    window.click("button", "Invite")
    window.type("dialog input[type=email]", email)
    window.click("dialog button.main", "Invite")
    window.shows(f"Send this link to {email}", "dialog")
    window.shows("/invitation#token=", "dialog code")
    take_pictures(window, pictures, "invitation-link")
    assert violations(window) == []
