"""Tenants with aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.aggregates.aggregate_client import AggregateClient


@pytest.fixture
def requests_5m(server: str) -> AggregateClient:
    """An aggregate of requests to customers' endpoints, with counts and durations."""
    # Imported here because Django must be set up first.
    from tests.aggregates.aggregate_client import make_aggregate

    return make_aggregate(server)
