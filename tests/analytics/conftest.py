"""Tenants with datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.analytics.made import Made


@pytest.fixture
def shop(server: str) -> Made:
    """A dataset of orders and stock."""
    # Django has been set up by now.
    from tests.analytics.made import make_dataset

    return make_dataset(server)
