"""A tenant gets a grid of its own, and loses it, while clients watch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from uuid import UUID

import psycopg
import pytest

from realtime.grid.size import GridSize
from tests.documents.collection import CollectionClient, make_collection
from tests.documents.outbox.streams import Streams
from tests.own_server import another_server
from tests.realtime.client import Client, greeted
from tests.realtime.live.answer import Answer, subscribe
from tests.realtime.live.conftest import BackgroundProcesses
from tests.realtime.live.test_resuming import key_of
from tests.waiting import wait_until

pytestmark = pytest.mark.backend(
    "postgres", reason="dedicated grids have collections in PostgreSQL"
)

MOVED_S = 60.0


@pytest.fixture
def client(todos: CollectionClient) -> Iterator[Client]:
    """A connection to a server of its own, whose hubs begin with this test."""
    with another_server() as other, greeted(other.url, key_of(todos)) as client:
        yield client


@pytest.fixture
def tenant_id(todos: CollectionClient) -> Iterator[UUID]:
    """The tenant, which afterwards has no grid of its own any more."""
    from realtime.clusters import epochs

    yield todos.account.tenant.pk
    epochs.disown(todos.account.tenant.pk)


def until_moved(answer: Answer) -> None:
    """Take frames until the subscription goes on in another hub."""
    assert answer.until("reset", MOVED_S)["reason"] == "moved"
    answer.until("ready", MOVED_S)


def test_a_tenants_queries_go_to_its_own_grid_and_back(
    client: Client,
    todos: CollectionClient,
    background: BackgroundProcesses,
    tenant_id: UUID,
    server: str,
    postgres_url: str,
) -> None:
    from realtime.clusters import epochs, grids

    answer = subscribe(client, "s", collection=todos.name)
    todos.insert({"_id": "a"})
    answer.until_shows([{"_id": "a"}])

    epochs.add(tenant_id, GridSize(1))
    (own,) = [epoch.grid for epoch in epochs.dedicated_epochs(tenant_id)]
    assert epochs.of_tenant(tenant_id) == []
    background.start_own_grid(own.epoch)
    with contextlib.ExitStack() as stack:
        stack.callback(background.kill, "own grid")
        wait_until(lambda: grids.watches(own), what="the own nodes to watch", timeout_s=MOVED_S)
        epochs.note_ready(own.epoch)
        until_moved(answer)
        assert answer.documents == [{"_id": "a"}]
        assert grids.queries(own) == 1

        stranger = make_collection(server)
        stranger.insert({"_id": "of another tenant"})
        todos.insert({"_id": "b"})
        answer.until_shows([{"_id": "a"}, {"_id": "b"}])
        # Whoever comes now goes there at once.
        late = subscribe(client, "late", collection=todos.name, sort=[["_id", -1]], limit=1)
        late.until_shows([{"_id": "b"}])
        assert grids.queries(own) == 2
        images = Streams(background.valkey, epoch=own.epoch, partitions=1).images()
        assert {image.tenant_id for image in images} == {tenant_id}

        # A server that begins now finds the grid at once, too.
        with another_server() as third, greeted(third.url, key_of(todos)) as other:
            subscribe(other, "o", collection=todos.name).until_shows([{"_id": "a"}, {"_id": "b"}])
            assert grids.queries(own) == 2

        epochs.disown(tenant_id)
        until_moved(answer)
    todos.insert({"_id": "c"})
    answer.until_shows([{"_id": "a"}, {"_id": "b"}, {"_id": "c"}])
    late.until_shows([{"_id": "c"}])
    with psycopg.connect(postgres_url) as admin:
        left = admin.execute(
            "SELECT count(*) FROM documents_gridepoch WHERE tenant_id = %s", [tenant_id]
        ).fetchone()
    assert left == (0,)
