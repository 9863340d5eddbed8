"""Views while the process that follows collections, or what it reads, is restarted."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

from tests.aggregates.background_service import running
from tests.aggregates.views.view_client import (
    RESUMED_WITHIN_S,
    generation_of,
    is_active,
    make_view,
    settle,
    write,
)
from tests.waiting import wait_until

if TYPE_CHECKING:
    import redis

    from tests.documents.collection import CollectionClient


def test_a_briefly_interrupted_follower_resumes(
    collection: CollectionClient, relay: redis.Redis
) -> None:
    from aggregates.following.follower import ViewFollower

    view = make_view(collection)
    with running(ViewFollower):
        write(collection, random.Random(1), 20)
        settle(view, collection)
        wait_until(lambda: is_active(view), what="the view")
    before, interrupted_s = generation_of(view), time.monotonic()
    write(collection, random.Random(2), 20)
    with running(ViewFollower):
        settle(view, collection)
        is_late = time.monotonic() - interrupted_s > RESUMED_WITHIN_S
        assert is_active(view) or is_late
        assert generation_of(view) == before or is_late
    # What was published meanwhile may be lost with the event layer, and is unknown.
    write(collection, random.Random(3), 20)
    relay.flushdb()
    with running(ViewFollower):
        settle(view, collection)
        wait_until(lambda: generation_of(view) > before, what="a new generation")
        settle(view, collection)


def test_a_view_is_rebuilt_when_the_event_layer_is_emptied_while_it_is_followed(
    collection: CollectionClient, relay: redis.Redis
) -> None:
    from aggregates.following.follower import ViewFollower

    view = make_view(collection)
    with running(ViewFollower):
        write(collection, random.Random(4), 20)
        settle(view, collection)
        wait_until(lambda: is_active(view), what="the view")
        before = generation_of(view)
        relay.flushdb()
        write(collection, random.Random(5), 20)
        wait_until(lambda: generation_of(view) > before, what="a new generation")
        settle(view, collection)
