"""Values in the console keep their BSON types and all of their digits, wherever they are typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.console.conftest import OpenWindow
from tests.console.window import Window
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient
    from tests.make import TenantAccount

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

#: A value of each type: as a person types it, and as canonical Extended JSON.
VALUES: dict[str, tuple[str, Any]] = {
    "int": ("7", {"$numberInt": "7"}),
    "small_long": ('{"$numberLong":"7"}', {"$numberLong": "7"}),
    "long": ("3000000000", {"$numberLong": "3000000000"}),
    "big_long": ("9007199254740993", {"$numberLong": "9007199254740993"}),
    "least_long": ("-9223372036854775808", {"$numberLong": "-9223372036854775808"}),
    "double": ("2.5", {"$numberDouble": "2.5"}),
    "whole_double": ("3.0", {"$numberDouble": "3.0"}),
    "negative_zero": ("-0.0", {"$numberDouble": "-0.0"}),
    "nan": ('{"$numberDouble":"NaN"}', {"$numberDouble": "NaN"}),
    "infinity": ('{"$numberDouble":"Infinity"}', {"$numberDouble": "Infinity"}),
    "decimal": ('{"$numberDecimal":"1.10"}', {"$numberDecimal": "1.10"}),
    "date": (
        '{"$date":"2026-11-21T08:30:00.123Z"}',
        {"$date": {"$numberLong": "1795249800123"}},
    ),
    "early_date": (
        '{"$date":{"$numberLong":"-62135596800000"}}',
        {"$date": {"$numberLong": "-62135596800000"}},
    ),
    "binary": (
        '{"$binary":{"base64":"AP8=","subType":"04"}}',
        {"$binary": {"base64": "AP8=", "subType": "04"}},
    ),
    "object_id": ('{"$oid":"0123456789abcdef01234567"}', {"$oid": "0123456789abcdef01234567"}),
    "timestamp": (
        '{"$timestamp":{"t":4294967295,"i":1}}',
        {"$timestamp": {"t": 4294967295, "i": 1}},
    ),
    "pattern": (
        '{"$regularExpression":{"pattern":"^a","options":"i"}}',
        {"$regularExpression": {"pattern": "^a", "options": "i"}},
    ),
    "digits_in_a_string": ('"9007199254740993"', "9007199254740993"),
    "boolean": ("true", True),
    "nothing": ("null", None),
    "list": (
        '[9007199254740993, 3.0, [{"$numberLong":"7"}], "before"]',
        [
            {"$numberLong": "9007199254740993"},
            {"$numberDouble": "3.0"},
            [{"$numberLong": "7"}],
            "before",
        ],
    ),
    "object": (
        '{"a": 3.0, "b": {"c": 9007199254740993}}',
        {"a": {"$numberDouble": "3.0"}, "b": {"c": {"$numberLong": "9007199254740993"}}},
    ),
}
CANONICAL = {name: stored for name, (_, stored) in VALUES.items()}

PANEL = ".json-view .editor-host"


def typed_document(identity: str) -> str:
    members = [f'"_id": "{identity}"', *(f'"{name}": {text}' for name, (text, _) in VALUES.items())]
    return "{" + ",\n".join(members) + "}"


def stored(notes: CollectionClient, identity: str) -> Any:
    """Return a document as canonical Extended JSON."""
    body = {"filter": {"_id": identity}}
    answer = notes.caller.post(f"{notes.path}/query", body, Rillbase_EJSON="canonical")
    assert answer.status_code == 200, answer.text
    return answer.json()["items"][0]["document"]


def grid(open_window: OpenWindow, notes: CollectionClient) -> Window:
    window = open_window(notes.account)
    window.open(f"/collections/{notes.name}")
    window.is_live()
    return window


def wait_for_text(window: Window, text: str, within: str) -> None:
    wait_until(lambda: any(text in shown for shown in window.texts(within)), what=f"`{text}`")


def text_in(window: Window, editor: str) -> str:
    """Return the text of an editor."""
    lines = (
        f"[...(document.querySelector({json.dumps(editor)})?.shadowRoot"
        "?.querySelectorAll('.cm-line') ?? [])].map((line) => line.textContent)"
    )
    window.wait(f"({lines}).at(-1) === '}}'")
    text: str = window.evaluate(f"({lines}).join('\\n')")
    return text


def open_as_json(window: Window, identity: str) -> str:
    # The editor holds only the lines that are in view.
    window.page.set_screen(width=1400, height=3_000)
    window.click(f"[data-key='{identity}'] [aria-colindex='2']")
    window.click(".panel button", "JSON")
    return text_in(window, PANEL)


def cell(window: Window, identity: str, name: str) -> str:
    """Return a selector of a document's field in the grid."""
    heads = "[...document.querySelectorAll('[role=grid] [role=columnheader]')]"
    place = window.evaluate(
        f"({heads}).find((e) => e.innerText.trim().startsWith({json.dumps(name)}))?.ariaColIndex"
    )
    return f"[data-key='{identity}'] [aria-colindex='{place}']"


def test_a_new_document_is_stored_as_it_is_typed(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = grid(open_window, notes)
    window.click("button.main", "New")
    window.write("dialog .editor-host", typed_document("typed"))
    window.click("dialog button.main", "Insert")
    wait_for_text(window, "typed", ".panel")
    assert stored(notes, "typed") == {"_id": "typed", **CANONICAL}
    assert window.complaints == []


def test_an_edit_of_other_fields_leaves_every_value_and_type(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    notes.insert({"_id": "edited", "title": "before", **CANONICAL})
    window = grid(open_window, notes)
    text = open_as_json(window, "edited")
    for plain in ("9007199254740993", "3.0", "-9223372036854775808", "3000000000", "2.5"):
        assert f": {plain},\n" in text, text
    # Changing one element writes the whole list.
    window.write(PANEL, text.replace('"before"', '"after"'))
    window.press("Enter", ctrl=True)
    wait_for_text(window, "Saved.", ".toast")
    expected = {"_id": "edited", "title": "after", **CANONICAL}
    assert stored(notes, "edited") == {**expected, "list": [*CANONICAL["list"][:3], "after"]}
    assert window.complaints == []


def test_a_document_that_is_replaced_as_a_whole_preserves_every_value_and_type(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    notes.insert({"_id": "replaced", "title": "before", "a.b": {"$numberLong": "1"}, **CANONICAL})
    window = grid(open_window, notes)
    text = open_as_json(window, "replaced")
    window.write(PANEL, text.replace('"title": "before"', '"title": "after"'))
    window.press("Enter", ctrl=True)
    wait_for_text(window, "Saved.", ".toast")
    expected = {"_id": "replaced", "title": "after", "a.b": {"$numberLong": "1"}, **CANONICAL}
    assert stored(notes, "replaced") == expected


def test_a_number_in_the_editor_can_be_exchanged_for_one_with_other_digits_or_type(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    notes.insert({"_id": "edited", "n": {"$numberLong": "9007199254740992"}, "m": 3})
    window = grid(open_window, notes)
    text = open_as_json(window, "edited")
    window.write(PANEL, text.replace("740992", "740993").replace(": 3", ": 3.0"))
    window.press("Enter", ctrl=True)
    wait_for_text(window, "Saved.", ".toast")
    assert stored(notes, "edited") == {
        "_id": "edited",
        "n": {"$numberLong": "9007199254740993"},
        "m": {"$numberDouble": "3.0"},
    }


#: What is typed over a cell, and what it becomes: a number keeps its type.
TYPED_OVER = {
    "int": ("9007199254740993", {"$numberLong": "9007199254740993"}),
    "small_long": ("8", {"$numberLong": "8"}),
    "long": ("5", {"$numberLong": "5"}),
    "big_long": ("9007199254740995", {"$numberLong": "9007199254740995"}),
    "double": ("2", {"$numberDouble": "2.0"}),
    "whole_double": ("4", {"$numberDouble": "4.0"}),
    "nan": ('{"$numberDouble":"-Infinity"}', {"$numberDouble": "-Infinity"}),
    "decimal": ("1.2345678901234567890", {"$numberDecimal": "1.2345678901234567890"}),
    "date": ("2026-12-01T00:00:00Z", {"$date": {"$numberLong": "1796083200000"}}),
    "binary": (
        '{"$binary":{"base64":"AQ==","subType":"00"}}',
        {"$binary": {"base64": "AQ==", "subType": "00"}},
    ),
    "object_id": ('{"$oid":"f123456789abcdef01234567"}', {"$oid": "f123456789abcdef01234567"}),
    "digits_in_a_string": ("9007199254740995", "9007199254740995"),
    "boolean": ("false", False),
    "nothing": ("9007199254740993", {"$numberLong": "9007199254740993"}),
}


def test_a_number_in_a_cell_preserves_its_type_and_all_digits_that_are_typed(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    notes.caller.delete(f"{notes.path}/documents/n0")
    notes.insert({"_id": "cells", **CANONICAL})
    window = grid(open_window, notes)
    for name, (text, expected) in TYPED_OVER.items():
        window.double_click(cell(window, "cells", name))
        window.type("input.cell-editor", text)
        window.press("Enter")
        wait_until(
            lambda name=name, expected=expected: stored(notes, "cells")[name] == expected,  # type: ignore[misc]
            what=f"the change of {name}",
        )
    changed = {name: expected for name, (_, expected) in TYPED_OVER.items()}
    assert stored(notes, "cells") == {"_id": "cells", **CANONICAL, **changed}


def test_an_undo_of_an_edit_brings_back_value_and_type(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    notes.insert({"_id": "cells", "n": {"$numberDouble": "3.0"}})
    window = grid(open_window, notes)
    window.double_click(cell(window, "cells", "n"))
    window.type("input.cell-editor", "9007199254740993")
    window.press("Enter")
    wait_until(
        lambda: stored(notes, "cells")["n"] == {"$numberLong": "9007199254740993"}, what="the edit"
    )
    window.click(".toast button", "Undo")
    wait_until(lambda: stored(notes, "cells")["n"] == {"$numberDouble": "3.0"}, what="the undo")


def test_a_deleted_document_is_restored_with_every_value_and_type(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    notes.insert({"_id": "deleted", **CANONICAL})
    window = grid(open_window, notes)
    window.click("[data-key=deleted] input[type=checkbox]")
    window.click(".selection-bar button", "Delete")
    window.click("dialog button.danger", "Delete")
    wait_for_text(window, "Document deleted", ".toast")
    wait_until(lambda: "deleted" not in notes.ids(), what="the deletion")
    window.click(".toast button", "Undo")
    wait_until(lambda: "deleted" in notes.ids(), what="the document")
    assert stored(notes, "deleted") == {"_id": "deleted", **CANONICAL}


def test_the_playground_returns_documents_by_a_value_of_each_type(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    searchable = {name: value for name, value in VALUES.items() if name != "pattern"}
    notes.insert_many([{"_id": name, "v": value} for name, (_, value) in searchable.items()])
    notes.insert({"_id": "neighbour", "v": {"$numberLong": "9007199254740992"}})
    window = open_window(notes.account)
    window.open("/playground")
    keys = "[...document.querySelectorAll('.answer [data-key]')].map((row) => row.dataset.key)"
    for name, (text, _) in searchable.items():
        window.write(".playground .asking .editor-host", f'{{"v": {{"$eq": {text}}}}}')
        window.click("button.main", "Run live")
        # A null is also found where there is no field, and equal numbers have several types.
        others = {"n0", "n1", "n2"} if name == "nothing" else set()
        others |= {"int", "small_long"} if name in ("int", "small_long") else set()
        # A value is also found in a list.
        others |= {"list"} if name in ("big_long", "whole_double") else set()
        expected = json.dumps(sorted(others | {name}))
        window.wait(f"JSON.stringify(({keys}).toSorted()) === JSON.stringify({expected})")
    assert window.complaints == []


def test_an_import_shows_and_stores_every_value_and_type(
    open_window: OpenWindow, notes: CollectionClient, tmp_path: Path
) -> None:
    file = tmp_path / "types.ndjson"
    file.write_text(typed_document("imported").replace("\n", " ") + "\n")
    window = grid(open_window, notes)
    window.click("button[aria-label=More]")
    window.click("[role=menuitem]", "Import")
    window.choose_file("dialog input[type=file]", file)
    wait_for_text(window, "9007199254740993", "dialog [aria-label=Preview]")
    window.click("dialog footer button", "Import")
    wait_for_text(window, "1 written", "dialog [role=status]")
    assert stored(notes, "imported") == {"_id": "imported", **CANONICAL}


def test_an_export_is_filtered_by_a_date_and_by_an_integer_beyond_the_doubles(
    open_window: OpenWindow, notes: CollectionClient, tmp_path: Path
) -> None:
    early, late = ({"$date": f"{year}-01-01T00:00:00Z"} for year in (2025, 2027))
    big = {"$numberLong": "9007199254740993"}
    notes.insert_many(
        [
            {"_id": "early", "at": early, "n": big},
            {"_id": "late", "at": late, "n": big},
            {"_id": "near", "at": late, "n": {"$numberLong": "9007199254740992"}},
        ]
    )
    window = grid(open_window, notes)
    for field, text in (("at", '{"$date": "2026-01-01T00:00:00Z"}'), ("n", "9007199254740993")):
        window.click("button", "Filter")
        window.click("[role=menuitem]", field)
        last = "[...document.querySelectorAll('.condition')].at(-1)"
        window.evaluate(
            f"({last}).querySelector('select').dataset.last = '{field}',"
            f"({last}).querySelector('.value-text').dataset.last = '{field}'"
        )
        if field == "at":
            window.select(f"select[data-last={field}]", ">")
        window.type(f".value-text[data-last={field}]", text)
    window.wait("document.querySelectorAll('.rows [role=row]').length === 1")
    wait_for_text(window, "late", "[role=row]")
    window.page.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    window.click("button[aria-label=More]")
    window.click("[role=menuitem]", "Export as NDJSON")
    file = tmp_path / f"{notes.name}.ndjson"
    wait_until(lambda: file.exists() and file.read_text().endswith("\n"), what="the export")
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["_id"] for line in lines] == ["late"]


READ = """query Read($filter: JSON) {
  documents(collection: "notes", filter: $filter, first: 5) { nodes { document } }
}"""


def test_variables_of_graphql_operations_preserve_their_digits(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    notes.insert_many(
        [
            {"_id": "big", "n": {"$numberLong": "9007199254740993"}},
            {"_id": "near", "n": {"$numberLong": "9007199254740992"}},
        ]
    )
    window = open_window(notes.account)
    window.open("/graphql")
    window.wait("document.querySelector('.graphql-schema li')")
    editors = "[...document.querySelectorAll('.editor-host')]"
    window.wait(f"({editors}).length >= 2")
    window.evaluate(f"({editors}).forEach((e, place) => {{ e.dataset.place = place; }})")
    window.write(".editor-host[data-place='0']", READ)
    window.write(".editor-host[data-place='1']", '{"filter": {"n": 9007199254740993}}')
    window.click("button", "Run")
    answer = "document.querySelector('.graphql-answer .editor-host')?.shadowRoot?.textContent"
    window.wait(f"({answer})?.includes('\"big\"') && !({answer}).includes('\"near\"')")
    window.wait(f"({answer}).includes('9007199254740993')")


def test_the_data_of_a_publication_preserves_its_values_and_types(
    open_window: OpenWindow, server: str, dedicated: TenantAccount
) -> None:
    from tests.storage_engine.topics.topic_client import make_topic

    topic = make_topic(server, account=dedicated, name="cities", kind="geo")
    window = open_window(dedicated)
    window.open("/topics/cities")
    window.type(".publish input", "16.37, 48.21")
    window.write(".publish .editor-host", '{"n": 9007199254740993, "x": 3.0}')
    window.click(".publish button", "Publish")
    wait_for_text(window, '{"n":9007199254740993,"x":3', "[aria-label=Publications]")
    area = json.dumps({"box": [16, 48, 17, 49]})
    answer = topic.caller.get(f"{topic.path}/publications?geo={area}&from=-1h")
    assert '"n":{"$numberLong":"9007199254740993"},"x":3.0' in answer.text.replace(" ", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9007199254740993", {"$numberLong": "9007199254740993"}),
        ("3.0", {"$numberDouble": "3.0"}),
    ],
)
def test_a_change_of_many_documents_shows_and_stores_what_is_typed(
    open_window: OpenWindow, notes: CollectionClient, text: str, expected: object
) -> None:
    window = grid(open_window, notes)
    window.click("[data-key=n1] input[type=checkbox]")
    window.click(".selection-bar button", "Change")
    window.type("dialog input[list=bulk-fields]", "rank")
    window.type("dialog label:has(.hint) input", text)
    wait_for_text(window, f"It is stored as {text}", "dialog")
    window.click("dialog button.main", "Change")
    wait_until(lambda: stored(notes, "n1")["rank"] == expected, what="the change")


def test_the_history_of_the_playground_and_its_code_preserve_values_and_types(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    notes.insert({"_id": "big", "n": {"$numberLong": "9007199254740993"}})
    notes.insert({"_id": "near", "n": {"$numberLong": "9007199254740992"}})
    window = open_window(notes.account)
    window.open("/playground")
    window.write(".playground .asking .editor-host", '{"n": 9007199254740993}')
    window.click("button.main", "Run live")
    keys = "[...document.querySelectorAll('.answer [data-key]')].map((row) => row.dataset.key)"
    window.wait(f"({keys}).join() === 'big'")
    window.write(".playground .asking .editor-host", "{}")
    window.click("button.main", "Run live")
    window.wait(f"({keys}).includes('near')")
    window.click("button", "History")
    window.click("[role=menuitem]", "9007199254740993")
    window.wait(f"({keys}).join() === 'big'")
    window.click("button", "Code")
    wait_for_text(window, 'filter({"n":{"$numberLong":"9007199254740993"}})', "dialog pre")
