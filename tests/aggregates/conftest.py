"""Tenants with aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.aggregates.made import Made


@pytest.fixture
def requests_5m(server: str) -> Made:
    """Requests to customers' endpoints, counted and timed."""
    # Django has been set up by now.
    from tests.aggregates.made import make_aggregate

    return make_aggregate(server)
