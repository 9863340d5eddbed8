"""Views are watched from before they have rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import redis

from tests.aggregates.background_service import running
from tests.aggregates.test_live import key_of, subscribe
from tests.aggregates.test_views import make_view
from tests.realtime.client import greeted

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient


@pytest.fixture
def things(server: str) -> CollectionClient:
    from tests.documents.collection import make_collection

    collection = make_collection(server)
    collection.insert_many([{"kind": kind, "size": 1} for kind in "aab"])
    return collection


@pytest.fixture
def relay(valkey_url: str) -> Iterator[None]:
    from documents.outbox.loop import RelayLoop

    with redis.Redis.from_url(valkey_url) as client:
        client.flushdb()
        with running(RelayLoop):
            yield


@pytest.mark.usefixtures("relay")
def test_a_view_that_is_being_built_is_watched_and_delivers_its_rows(
    server: str, things: CollectionClient
) -> None:
    from aggregates.following.follower import ViewFollower

    view = make_view(things)
    assert view.caller.post(f"{view.path}/query", {}).status_code == 409
    with greeted(server, key_of(view)) as client:
        watched = subscribe(client, view, group_by=["kind"])
        with running(ViewFollower):
            watched.ready()
            assert {row["kind"] for row in watched.rows.values()} == {"a", "b"}
            things.insert({"kind": "c", "size": 1})
            watched.until(lambda: len(watched.rows) == 3)
