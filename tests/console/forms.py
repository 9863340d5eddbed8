"""Fills in the console's forms for definitions, as a person does."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.caller import with_key

if TYPE_CHECKING:
    from tests.console.window import Window
    from tests.documents.collection import CollectionClient
    from tests.make import TenantAccount

MAIN = ".definition-main"
PREVIEW = ".definition-preview"


def control_plane(base: str, account: TenantAccount, path: str) -> Any:
    """Call the tenant's control plane."""
    answer = with_key(base, account.admin_key).get(f"/api/v1/tenants/{account.slug}/{path}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def saved(notes: CollectionClient, member: str) -> Any:
    """Return a member of the collection's definition from the API."""
    return control_plane(notes.caller.base, notes.account, f"collections/{notes.name}")[member]


def declare(notes: CollectionClient, **members: object) -> None:
    """Change members of the collection by the API."""
    caller = with_key(notes.caller.base, notes.account.admin_key)
    path = f"/api/v1/tenants/{notes.account.slug}/collections/{notes.name}"
    answer = caller.patch(path, members)
    assert answer.status_code == 200, answer.text


def save(window: Window) -> None:
    window.click(".definition-foot button", "Save")
    window.wait("!document.querySelector('.definition-foot')")


def label(name: str, within: str = MAIN) -> str:
    """Return a selector of the element with this accessible name."""
    return f"{within} [aria-label={json.dumps(name)}]"


def field(window: Window, name: str, within: str = MAIN) -> str:
    """Return a selector of the control that a label names."""
    text = "(label.querySelector('.label') ?? label).textContent"
    result = (
        f"[...document.querySelectorAll({json.dumps(within + ' label')})]"
        f".find((label) => {text} === {json.dumps(name)})?.control"
    )
    window.wait(result)
    mark = json.dumps(f"{within} {name}")
    window.evaluate(f"{result}.setAttribute('data-labelled', {mark})")
    return f"[data-labelled={mark}]"
