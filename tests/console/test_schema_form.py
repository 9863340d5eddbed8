"""The form of a collection's schema, beside its JSON."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.console.conftest import OpenWindow
from tests.console.forms import MAIN, PREVIEW, declare, field, label, save, saved
from tests.console.looking import opened, violations
from tests.console.window import Window

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

#: Whether the browser asks before it leaves the page.
LEAVING_IS_GUARDED = "!dispatchEvent(new Event('beforeunload', {cancelable: true}))"

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]


@pytest.fixture
def window(open_window: OpenWindow, notes: CollectionClient) -> Window:
    window = opened(open_window, notes.account)
    window.open(f"/collections/{notes.name}/schema")
    return window


def test_a_schema_is_built_with_the_form_alone(window: Window, notes: CollectionClient) -> None:
    window.click("button", "Add a field")
    window.type(f"{MAIN} .schema-row .input", "title")
    window.click(label("title is required"))
    window.click(label("Details of title"))
    window.type(field(window, "Minimum length"), "1")
    window.type(field(window, "Maximum length"), "80")
    window.type(field(window, "Pattern"), "^[A-Z]")

    window.click("button", "Add a field")
    window.type(f"{MAIN} .schema-field:nth-of-type(2) .schema-row .input", "rank")
    window.select(field(window, "Type of rank"), "number")
    window.click(label("Details of title"))
    window.click(label("Details of rank"))
    window.type(field(window, "Minimum"), "0")
    window.type(field(window, "Maximum"), "1.0")

    window.click(f"{MAIN} > .definition-form > .schema-fields > .schema-foot button", "Add a field")
    window.type(f"{MAIN} .schema-field:nth-of-type(3) .schema-row .input", "state")
    window.click(label("Details of rank"))
    window.click(label("Details of state"))
    window.type(field(window, "Allowed values"), "open\ndone\n3")
    window.click(".schema-types summary", "Several types")
    window.click(".schema-types label", "null")

    window.click(f"{MAIN} > .definition-form > .schema-fields > .schema-foot button", "Add a field")
    window.type(f"{MAIN} .schema-field:nth-of-type(4) .schema-row .input", "lines")
    window.select(field(window, "Type of lines"), "array")
    window.click(label("Details of state"))
    window.click(label("Details of lines"))
    window.type(field(window, "Maximum items"), "9")
    window.select(field(window, "Type of items"), "object")
    window.click(".schema-items button", "Add a field")
    window.type(".schema-items .schema-row .input", "due")
    window.select(field(window, "Type of due"), "date")
    window.click("label", "Allow other fields")
    save(window)
    assert json.dumps(saved(notes, "schema")) == json.dumps(
        {
            "type": "object",
            "properties": {
                "title": {"type": "string", "minLength": 1, "maxLength": 80, "pattern": "^[A-Z]"},
                "rank": {"type": "number", "minimum": 0, "maximum": 1.0},
                "state": {"type": ["string", "null"], "enum": ["open", "done", 3]},
                "lines": {
                    "type": "array",
                    "maxItems": 9,
                    "items": {
                        "type": "object",
                        "properties": {"due": {"bsonType": "date"}},
                        "additionalProperties": False,
                    },
                },
            },
            "required": ["title"],
        }
    )
    assert window.complaints == []


def test_the_preview_counts_the_documents_that_violate_the_schema(
    window: Window, notes: CollectionClient
) -> None:
    window.click("button", "Infer from documents")
    window.shows("All of 3 documents satisfy the schema", PREVIEW)
    window.click(label("Details of rank"))
    window.type(field(window, "Maximum"), "1")
    window.shows("1 of 3 documents violates", PREVIEW)
    window.shows("rank is 2, more than 1", ".violations")
    window.select(field(window, "Type of title"), "date")
    window.shows("3 of 3 documents violate", PREVIEW)
    window.shows("title is a string, not date", ".violations")
    assert saved(notes, "schema") is None
    assert violations(window) == []


def test_the_servers_errors_are_at_the_fields_and_in_the_json(
    window: Window, notes: CollectionClient
) -> None:
    window.click("button", "Add a field")
    window.click(label("Details of field_1"))
    window.type(field(window, "Pattern"), "a(")
    window.click(".definition-foot button", "Save")
    window.wait(f"document.querySelector('{MAIN} .input[aria-invalid=true]')")
    pattern = field(window, "Pattern")
    assert window.evaluate(f"document.querySelector({pattern!r}).ariaInvalid") == "true"
    window.shows("properties/field_1/pattern", "[role=alert]")
    window.click(".definition-bar button", "JSON")
    window.wait(
        "document.querySelector('.editor-host')?.shadowRoot?.querySelector('.cm-lintRange-error')"
    )
    window.click(".definition-bar button", "Form")
    window.click(label("Details of field_1"))
    window.type(field(window, "Pattern"), "a")
    window.wait(f"!document.querySelector('{MAIN} .input[aria-invalid=true]')")
    save(window)
    assert saved(notes, "schema")["properties"] == {"field_1": {"type": "string", "pattern": "a"}}


def test_what_the_form_cannot_express_is_named_and_kept(
    window: Window, notes: CollectionClient
) -> None:
    schema = {
        "title": "Notes",
        "bsonType": "object",
        "required": ["rank", "elsewhere"],
        "properties": {
            "rank": {"anyOf": [{"type": "number", "minimum": 1.0}, {"type": "null"}]},
            "title": {"type": "string", "minLength": 2.0},
        },
        "patternProperties": {"^x": {"type": "string"}},
    }
    declare(notes, schema=schema)
    window.open(f"/collections/{notes.name}/schema")
    for name in ("title", "patternProperties", "required: elsewhere"):
        window.shows(name, f"{MAIN} .in-json button")
    window.click(label("Details of title"))
    window.type(field(window, "Maximum length"), "5")
    save(window)
    schema["properties"]["title"]["maxLength"] = 5  # type: ignore[index]
    assert json.dumps(saved(notes, "schema")) == json.dumps(schema)
    window.click(".in-json button", "patternProperties")
    window.wait("document.querySelector('.editor-host')?.shadowRoot?.querySelector('.cm-content')")


def test_changes_survive_a_switch_of_views_and_pages(
    window: Window, notes: CollectionClient
) -> None:
    window.click("button", "Add a field")
    window.type(f"{MAIN} .schema-row .input", "title")
    window.click(label("Details of title"))
    window.type(field(window, "Maximum length"), "many")
    window.shows("This is not a number", ".wrong")
    window.click(".definition-bar button", "JSON")
    window.shows("is not valid yet", ".notice")
    window.click("header nav a", "Indexes")
    window.click("header nav a", "Schema")
    window.shows("not saved", ".definition-bar")
    window.click(label("Details of title"))
    longest = field(window, "Maximum length")
    assert window.evaluate(f"document.querySelector({longest!r}).value") == "many"
    assert window.evaluate(LEAVING_IS_GUARDED)
    window.click(".definition-foot button", "Save")
    window.shows("Correct the marked fields first", "[role=alert]")
    window.click(".definition-foot button", "Discard")
    window.shows("There is no schema", MAIN)
    assert not window.evaluate(LEAVING_IS_GUARDED)
    assert saved(notes, "schema") is None


def test_a_text_that_is_not_json_waits_in_the_editor(
    window: Window, notes: CollectionClient
) -> None:
    window.click(".definition-bar button", "JSON")
    content = f"document.querySelector('{MAIN} .editor-host')?.shadowRoot?.querySelector"
    window.wait(f"{content}('.cm-content')")
    assert window.evaluate(f"{content}('.cm-content').textContent") == ""
    window.write(f"{MAIN} .editor-host", '{"type": "object", ')
    window.click(".definition-bar button", "Form")
    window.shows("syntax error", MAIN)
    window.click(f"{MAIN} button", "Edit as JSON")
    window.write(f"{MAIN} .editor-host", '{"b": 1, "1": 2}')
    window.click(".definition-bar button", "Form")
    window.shows("would reorder or round", MAIN)
    assert saved(notes, "schema") is None


_NUMBERS = (0, 1, 1.0, 2.5, 2**40, -3)
_LEAVES: tuple[dict[str, Any], ...] = (
    *({"type": "number", "minimum": number} for number in _NUMBERS),
    *({"bsonType": ["int", "long"], "maximum": number} for number in _NUMBERS),
    {"type": "string", "minLength": 1, "pattern": "^a"},
    {"bsonType": "string", "description": "As MongoDB names it", "title": "A"},
    {"enum": ["a", 1, 1.0, None, {"b": [2]}, " padded ", "1"]},
    {"anyOf": [{"type": "null"}, {"bsonType": "date"}]},
    {"not": {"type": "null"}},
    {},
)
_NAMES = ("a", "b", "c/d", "e~f", "g h", "ü", "__proto__", "constructor")
_EXTRAS: tuple[dict[str, Any], ...] = (
    {},
    {"required": ["a"]},
    {"additionalProperties": False},
    {"title": "t"},
)


def random_object(random: Random, depth: int) -> dict[str, Any]:
    names = random.sample(_NAMES, random.randint(0, 4))
    fields = {name: random_schema(random, depth) for name in names}
    return {"type": "object", **random.choice(_EXTRAS), "properties": fields}


def random_schema(random: Random, depth: int) -> dict[str, Any]:
    match random.randint(0, 4) if depth > 0 else 0:
        case 1:
            return random_object(random, depth - 1)
        case 2:
            return {"type": "array", "items": random_schema(random, depth - 1)}
        case _:
            return random.choice(_LEAVES)


@pytest.mark.parametrize("seed", range(3))
def test_the_form_changes_nothing_but_what_is_edited(
    window: Window, notes: CollectionClient, seed: int
) -> None:
    random = Random(seed)
    for _ in range(5):
        declare(notes, schema=random_object(random, 3))
        before = saved(notes, "schema")
        window.open(f"/collections/{notes.name}/schema")
        window.wait(f"document.querySelector('{MAIN} .schema-foot')")
        window.click(f"{MAIN} > .definition-form > .schema-fields > .schema-foot button", "Add")
        window.shows("not saved", ".definition-bar")
        save(window)
        name = f"field_{len(before['properties']) + 1}"
        before["properties"][name] = {"type": "string"}
        assert json.dumps(saved(notes, "schema")) == json.dumps(before)
