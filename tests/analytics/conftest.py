"""Tenants with datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

import pytest

if TYPE_CHECKING:
    from analytics.pipeline.catalogue import Authority
    from tests.analytics.dataset_client import DatasetClient


@pytest.fixture(autouse=True)
def _datasets_of_earlier_tests_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator sweeps all datasets when it starts; those of earlier tests take seconds."""
    from analytics.models import Dataset
    from analytics.pipeline import collector, housekeeping

    earlier = set(Dataset.unscoped.using("relay").values_list("pk", flat=True))

    def sweep(authority: Authority, dataset_id: UUID) -> int:
        return 0 if dataset_id in earlier else collector.sweep(authority, dataset_id)

    monkeypatch.setattr(housekeeping, "sweep", sweep)


@pytest.fixture
def shop(server: str) -> DatasetClient:
    """A dataset of orders and stock."""
    # Imported here because Django must be set up first.
    from tests.analytics.dataset_client import make_dataset

    return make_dataset(server)
