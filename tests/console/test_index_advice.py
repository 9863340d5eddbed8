"""Why an automatic index has its technique, in the console."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from documents.models import Index
from tests.console.looking import opened, take_pictures, violations
from tests.documents.collection import make_collection

if TYPE_CHECKING:
    from tests.console.conftest import OpenWindow

ADVICE = {
    "technique": "lazy",
    "gain": 21.4,
    "since": "2026-03-01T00:00:00.000Z",
    "use": {
        "reads": 6_000,
        "writes": 12_000,
        "lookups": 5_000,
        "newest": 4_900,
        "ordered": 0,
        "entries": 1_500.0,
        "block_share": 0.8,
    },
}


def test_the_advice_for_an_index_is_shown_with_its_figures(
    open_window: OpenWindow, server: str, pictures: Path
) -> None:
    shops = make_collection(server, indexes=[("by-shop", [("shop", 1)], False)], backend="native")
    shops.insert_many([{"_id": n, "shop": n % 2} for n in range(20)])
    rows = Index.unscoped.using("relay").filter(collection_id=shops.collection.pk)
    rows.update(advice=ADVICE)
    window = opened(open_window, shops.account)
    window.open(f"/collections/{shops.name}/indexes")
    window.shows("not unique, composite (automatic)")
    window.shows("In one hour: 5,000 lookups (98 % for the newest documents), 12,000 writes.")
    window.shows("A lazy index would be about 21.4 times as fast (first measured")
    assert violations(window) == []
    take_pictures(window, pictures, "index-advice")
    rows.update(advice={**ADVICE, "technique": "composite", "gain": 1.0, "since": None})
    window.open("/playground")
    window.open(f"/collections/{shops.name}/indexes")
    window.shows("A composite index suits this.")
