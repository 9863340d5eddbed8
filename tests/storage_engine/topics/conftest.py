"""Tenants with topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.storage_engine.topics.topic_client import Topic


@pytest.fixture
def topic(server: str) -> Topic:
    """A hierarchical one."""
    # Django is set up by now.
    from tests.storage_engine.topics.topic_client import make_topic

    return make_topic(server)


@pytest.fixture
def city(server: str) -> Topic:
    """One about areas on earth."""
    from tests.storage_engine.topics.topic_client import make_topic

    return make_topic(server, name="traffic", kind="geo")
