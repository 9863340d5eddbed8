"""Views while the storage node is killed or restarted. It has their rows, and the documents of
native collections.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import redis

from tests.aggregates.background_service import running
from tests.aggregates.views.view_client import (
    RESUMED_WITHIN_S,
    generation_of,
    grouped_documents,
    is_active,
    make_view,
    settle,
    shown,
    write,
)
from tests.own_server import another_server
from tests.waiting import TIMEOUT_S, wait_until

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient
    from tests.own_node import OwnNode

RECOVERY_S = 60.0
WRITES = 120


@pytest.fixture
def collection(own_node: OwnNode, valkey_url: str) -> Iterator[CollectionClient]:
    """A collection in an installation with a storage node of its own, where views are followed."""
    from aggregates.following.follower import ViewFollower
    from documents.outbox.loop import RelayLoop
    from tests.documents.collection import make_collection

    with redis.Redis.from_url(valkey_url) as client:
        client.flushdb()
    with another_server() as other, running(RelayLoop), running(ViewFollower):
        yield make_collection(other.url)


def test_a_view_misses_nothing_when_the_node_is_killed_under_writes(
    own_node: OwnNode, collection: CollectionClient
) -> None:
    write(collection, random.Random(1), 20)
    view = make_view(collection)
    settle(view, collection)
    written, done = threading.Semaphore(0), threading.Event()

    def insert() -> None:
        for number in range(WRITES):
            document = {"_id": 1000 + number, "kind": "k", "n": number, "who": {"name": "w"}}
            path = f"{collection.path}/documents"
            while collection.caller.post(path, document).status_code == 503:
                pass
            written.release()
        done.set()

    writer = threading.Thread(target=insert)
    writer.start()
    for _ in range(2):
        for _ in range(WRITES // 3):
            assert written.acquire(timeout=TIMEOUT_S)
        own_node.kill()
        own_node.start()
    writer.join(TIMEOUT_S)
    assert done.is_set()
    expected = grouped_documents(collection)
    assert expected["k"]["count"] == WRITES
    wait_until(lambda: shown(view) == expected, what="all documents", timeout_s=RECOVERY_S)
    collection.caller.delete(f"{collection.path}/documents/~1001")
    expected = grouped_documents(collection)
    wait_until(lambda: shown(view) == expected, what="the deletion", timeout_s=RECOVERY_S)


@pytest.mark.backend("native", reason="other streams are not replaced")
def test_a_view_is_rebuilt_after_the_node_was_killed(
    own_node: OwnNode, collection: CollectionClient
) -> None:
    write(collection, random.Random(2), 20)
    view = make_view(collection)
    settle(view, collection)
    wait_until(lambda: is_active(view), what="the view")
    before = generation_of(view)
    own_node.kill()
    own_node.start()
    wait_until(lambda: generation_of(view) > before, what="new rows", timeout_s=RECOVERY_S)
    write(collection, random.Random(3), 20)
    expected = grouped_documents(collection)
    wait_until(lambda: shown(view) == expected, what="the writes", timeout_s=RECOVERY_S)


def test_a_view_is_not_rebuilt_after_a_clean_restart_of_the_node(
    own_node: OwnNode, collection: CollectionClient
) -> None:
    write(collection, random.Random(4), 20)
    view = make_view(collection)
    settle(view, collection)
    wait_until(lambda: is_active(view), what="the view")
    before, stopped_s = generation_of(view), time.monotonic()
    assert own_node.stop() == 0
    own_node.start()
    write(collection, random.Random(5), 20)
    expected = grouped_documents(collection)
    wait_until(lambda: shown(view) == expected, what="the writes", timeout_s=RECOVERY_S)
    is_late = time.monotonic() - stopped_s > RESUMED_WITHIN_S
    assert generation_of(view) == before or is_late
