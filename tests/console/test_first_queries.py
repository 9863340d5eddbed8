"""Pages with an editor open with an example of the tenant's own, and with its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.console.conftest import OpenWindow
    from tests.documents.collection import CollectionClient

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]

SCHEMA = {"type": "object", "properties": {"title": {"type": "string"}, "rank": {"type": "number"}}}
RESPONSE = "document.querySelector('.graphql-answer .editor-host')?.shadowRoot?.textContent"


@pytest.fixture
def ranked(server: str, notes: CollectionClient) -> CollectionClient:
    """A collection with a schema, beside one without."""
    from tests.documents.collection import make_collection

    collection = make_collection(server, account=notes.account, name="ranked", schema=SCHEMA)
    collection.insert_many([{"_id": f"r{n}", "title": f"Rank {n}", "rank": n} for n in range(3)])
    return collection


def test_the_playground_opens_with_the_result_of_an_example_and_has_a_history(
    open_window: OpenWindow, ranked: CollectionClient
) -> None:
    window = open_window(ranked.account)
    window.open("/playground")
    window.shows("Rank 2", ".answer [data-key=r2]")
    assert window.evaluate("document.querySelector('[aria-label=Collection]').value") == "ranked"
    assert window.evaluate("document.querySelector('[aria-label=Sort]').value") == "-rank"
    keys = "[...document.querySelectorAll('.answer [data-key]')].map((row) => row.dataset.key)"
    assert window.evaluate(keys) == ["r2", "r1", "r0"]

    window.type("[aria-label=Sort]", "rank")
    window.click("button.main", "Run live")
    window.wait(f"({keys})[0] === 'r0'")
    window.type("[aria-label=Sort]", "-title")
    window.click("button.main", "Run live")
    window.wait(f"({keys})[0] === 'r2'")
    window.click("button", "History")
    window.click("[role=menuitem]", "ranked sort rank")
    window.wait(f"({keys})[0] === 'r0'")
    window.click(".segments button", "Explain")
    window.shows("The query has no filter", ".explained")
    assert window.complaints == []


def test_graphql_opens_with_the_fields_of_a_collection_and_their_values(
    open_window: OpenWindow, ranked: CollectionClient
) -> None:
    window = open_window(ranked.account)
    window.open("/graphql")
    # The window is narrow, so there is room for one part.
    window.click(".graphql-parts button", "Response")
    window.wait(f"({RESPONSE})?.includes('ranked') && ({RESPONSE}).includes('Rank 1')")
    # Only what a person runs is remembered.
    assert not [text for text in window.texts("button") if "History" in text]
    assert window.complaints == []


def test_graphql_has_a_query_that_works_without_any_collection(
    open_window: OpenWindow, server: str
) -> None:
    from tests.make import make_tenant

    account = make_tenant()
    window = open_window(account)
    window.open("/graphql")
    window.wait(f"({RESPONSE})?.includes('viewer')")
    assert account.owner.email in window.evaluate(RESPONSE)
