"""Tenants with datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.analytics.dataset_client import DatasetClient


@pytest.fixture
def shop(server: str) -> DatasetClient:
    """A dataset of orders and stock."""
    # Imported here because Django must be set up first.
    from tests.analytics.dataset_client import make_dataset

    return make_dataset(server)
