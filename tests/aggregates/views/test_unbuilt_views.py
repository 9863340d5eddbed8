"""Views are watched from before they have rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.aggregates.background_service import running
from tests.aggregates.test_live import key_of, subscribe
from tests.aggregates.views.view_client import make_view
from tests.realtime.client import greeted

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient


@pytest.mark.usefixtures("relay")
def test_a_view_that_is_being_built_is_watched_and_delivers_its_rows(
    server: str, collection: CollectionClient
) -> None:
    from aggregates.following.follower import ViewFollower

    collection.insert_many([{"kind": kind, "size": 1} for kind in "aab"])
    view = make_view(collection)
    assert view.caller.post(f"{view.path}/query", {}).status_code == 409
    with greeted(server, key_of(view)) as client:
        watched = subscribe(client, view, group_by=["kind"])
        with running(ViewFollower):
            watched.ready()
            assert {row["kind"] for row in watched.rows.values()} == {"a", "b"}
            collection.insert({"kind": "c", "size": 1})
            watched.until(lambda: len(watched.rows) == 3)
