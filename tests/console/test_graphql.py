"""The GraphQL page: running an operation, watching a subscription, and browsing the schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.console.conftest import OpenWindow
from tests.console.window import Window

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

WATCH = 'subscription { documents(collection: "notes") { kind items { key } node { document } } }'
READ = 'query Read { documents(collection: "notes", first: 5) { nodes { document } } }'
ANSWER = "document.querySelector('.graphql-answer .editor-host')?.shadowRoot?.textContent"


def with_history(window: Window, operations: list[str]) -> None:
    """Give a window a history of operations, the first one most recent."""
    slot = f"rillbase:graphql:{window.tenant}"
    held = json.dumps(json.dumps(operations))
    window.open("/graphql")
    window.evaluate(f"localStorage.setItem({json.dumps(slot)}, {held})")
    window.open("/graphql")
    window.wait("document.querySelector('.graphql-schema li')")


def test_a_subscription_shows_events_and_a_query_its_response(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    with_history(window, [WATCH, READ])
    window.click("button", "Run")
    window.shows("READY", ".told")
    notes.insert({"_id": "n9", "title": "Told at once"})
    window.shows("Told at once", ".told")
    window.click("button", "Stop")

    window.click("button", "History")
    window.click("[role=menuitem]", "query Read")
    window.click("button", "Run")
    window.wait(f"({ANSWER})?.includes('Note 1')")
    assert window.complaints == []


def test_the_first_operation_reads_a_collection_of_the_tenant(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open("/graphql")
    window.wait("document.querySelector('.graphql-schema li')")
    window.click("button", "Run")
    window.wait(f"({ANSWER})?.includes('totalCount')")
    assert window.complaints == []


def test_the_schema_is_walked_through_and_searched(
    open_window: OpenWindow, notes: CollectionClient
) -> None:
    window = open_window(notes.account)
    window.open("/graphql")
    # The window is narrow, so there is room for one part.
    window.click(".graphql-parts button", "Schema")
    window.click(".graphql-schema .field-name", "documents")
    window.shows("Documents of a collection, page by page.", ".graphql-schema")
    window.click(".graphql-schema .type-link", "AnyDocumentConnection")
    window.shows("totalCount", ".graphql-schema")
    window.click(".graphql-schema .back")
    window.type("[aria-label='Find a field or a type']", "errorentry")
    window.shows("ErrorEntryConnection", ".graphql-schema")
    assert window.complaints == []
