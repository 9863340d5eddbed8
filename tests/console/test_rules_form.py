"""The form of a collection's access rules, and the preview of what they allow."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING

import pytest

from tests.console.conftest import OpenWindow
from tests.console.forms import MAIN, declare, field, label, save, saved
from tests.console.looking import opened, violations
from tests.console.window import Window

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

SIGNED_IN = {"$expr": {"$ne": [{"$auth": "sub"}, None]}}


@pytest.fixture
def window(open_window: OpenWindow, notes: CollectionClient) -> Window:
    notes.insert({"_id": "mine", "title": "Mine", "rank": 9, "user": "ada"})
    window = opened(open_window, notes.account)
    window.open(f"/collections/{notes.name}/rules")
    return window


def who_may(action: str) -> str:
    return label(f"Who may {action}")


def look(window: Window, claims: str) -> None:
    window.write(".try-as .editor-host", claims)
    window.click(".try-as button", "Run test")
    window.shows("documents", ".try-as [role=status]")


def rows(window: Window) -> dict[str, list[str]]:
    """Return the preview's verdicts on each document, by action."""
    window.wait("document.querySelector('.try-as tbody tr')")
    texts: dict[str, list[str]] = window.evaluate(
        "Object.fromEntries([...document.querySelectorAll('.try-as tbody tr')].map((row) => "
        "[row.cells[0].innerText, [...row.cells].slice(1).map((cell) => cell.innerText.trim())]))"
    )
    return texts


def test_rules_are_built_with_the_form_alone_and_bind_end_users(
    window: Window, notes: CollectionClient
) -> None:
    window.select(who_may("read"), "everyone")
    window.select(who_may("create"), "users")
    window.select(who_may("update"), "owner")
    window.type(field(window, "Field"), "user")
    window.select(who_may("delete"), "filter")
    window.type(field(window, "Filter to delete"), '{"rank": {"$gt": 1.0}}')
    look(window, '{"sub": "ada"}')
    assert rows(window) == {
        "mine": ["yes", "yes", "yes", "yes"],
        "n0": ["yes", "yes", "no", "no"],
        "n1": ["yes", "yes", "no", "no"],
        "n2": ["yes", "yes", "no", "yes"],
    }
    assert saved(notes, "access_rules") == {}
    save(window)
    assert json.dumps(saved(notes, "access_rules")) == json.dumps(
        {
            "read": True,
            "create": SIGNED_IN,
            "update": {"user": {"$auth": "sub"}},
            "delete": {"rank": {"$gt": 1.0}},
        }
    )
    anonymous = notes.anonymous()
    assert anonymous.post(f"{notes.path}/documents", {"_id": "x"}).status_code == 403
    look(window, "{}")
    assert rows(window)["mine"] == ["yes", "no", "no", "yes"]
    assert violations(window) == []
    assert window.complaints == []


def test_the_preview_agrees_with_the_server_on_saved_rules(
    window: Window, notes: CollectionClient
) -> None:
    own = {"$or": [{"user": {"$auth": "sub"}}, {"title": {"$in": {"$auth": "app.titles"}}}]}
    declare(notes, access_rules={"read": own})
    window.open(f"/collections/{notes.name}/rules")
    look(window, '{"sub": "ada", "app": {"titles": ["Note 1"]}}')
    window.shows("This user sees 2 of 4", ".try-as [role=status]")
    seen = [name for name, (read, *_) in rows(window).items() if read == "yes"]
    assert seen == ["mine", "n1"]
    look(window, '{"sub": "ada"}')
    window.shows("This user sees 0 of 4", ".try-as [role=status]")
    window.write(".try-as .editor-host", "[]")
    window.click(".try-as button", "Run test")
    window.shows("not a JSON object", ".try-as [role=alert]")


def test_errors_of_a_filter_are_at_its_field_and_keep_what_was_typed(
    window: Window, notes: CollectionClient
) -> None:
    window.select(who_may("read"), "filter")
    text = field(window, "Filter to read")
    window.type(text, '{"rank": {"$nope": 1}}')
    window.click(".definition-foot button", "Save")
    window.shows("$nope", f"{MAIN} .wrong")
    window.type(text, '{"rank": ')
    window.shows("not a JSON object", f"{MAIN} .wrong")
    window.click(".definition-bar button", "JSON")
    window.shows("is not valid yet", ".notice")
    window.click(".definition-bar button", "Form")
    assert window.evaluate(
        f"document.querySelector({field(window, 'Filter to read')!r}).value"
    ) == ('{"rank": ')
    window.select(who_may("read"), "nobody")
    save(window)
    assert saved(notes, "access_rules") == {"read": False}


_RULES: tuple[object, ...] = (
    True,
    False,
    SIGNED_IN,
    {"owner": {"$auth": "sub"}},
    {"team.id": {"$auth": "app.team"}},
    {"owner": {"$auth": "sub"}, "open": True},
    {"rank": {"$gte": 1.0, "$lt": 9007199254740993}},
    {"$or": [{"open": True}, {"owner": {"$in": [{"$auth": "sub"}, "x"]}}]},
    {},
)


def test_the_form_of_rules_changes_nothing_but_what_is_edited(
    window: Window, notes: CollectionClient
) -> None:
    random = Random(0)
    for rule in _RULES:
        others = random.sample(("create", "update"), random.randint(0, 2))
        rules = {"read": rule, **{action: random.choice(_RULES) for action in others}}
        declare(notes, access_rules=rules)
        before = saved(notes, "access_rules")
        window.open(f"/collections/{notes.name}/rules")
        window.select(who_may("delete"), "everyone")
        save(window)
        assert json.dumps(saved(notes, "access_rules")) == json.dumps({**before, "delete": True})
