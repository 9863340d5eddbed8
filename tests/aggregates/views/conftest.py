"""Collections of both backends, a relay, and the process that follows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
import redis

from tests.aggregates.background_service import running
from tests.documents.backends import backend, pytest_generate_tests

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient


@pytest.fixture(scope="module")
def relay(valkey_url: str) -> Iterator[redis.Redis]:
    """Runs a relay for the server; yields the event layer."""
    from documents.outbox.loop import RelayLoop

    with redis.Redis.from_url(valkey_url) as client:
        client.flushdb()
        with running(RelayLoop):
            yield client


@pytest.fixture(scope="module")
def follower(relay: redis.Redis) -> Iterator[None]:
    from aggregates.following.follower import ViewFollower

    with running(ViewFollower):
        yield


@pytest.fixture
def collection(server: str) -> CollectionClient:
    from tests.documents.collection import make_collection

    return make_collection(server)


__all__ = ["backend", "pytest_generate_tests"]
