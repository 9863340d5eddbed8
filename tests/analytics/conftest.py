"""Tenants with datasets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

if TYPE_CHECKING:
    from analytics.pipeline.catalogue import Authority
    from tests.analytics.dataset_client import DatasetClient


@pytest.fixture(autouse=True)
def _datasets_of_earlier_tests_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coordinator sweeps all datasets when it starts, and does the work of all: those of earlier
    tests would delay it.
    """
    from analytics.models import Dataset
    from analytics.pipeline import collector, housekeeping, ledger

    earlier = set(Dataset.unscoped.using("relay").values_list("pk", flat=True))

    def sweep(authority: Authority, dataset_id: UUID) -> int:
        return 0 if dataset_id in earlier else collector.sweep(authority, dataset_id)

    def without_earlier(list_datasets: Callable[[], list[UUID]]) -> Callable[[], list[UUID]]:
        return lambda: [pk for pk in list_datasets() if pk not in earlier]

    monkeypatch.setattr(housekeeping, "sweep", sweep)
    for name in ("datasets_with_work", "untagged"):
        monkeypatch.setattr(ledger, name, without_earlier(getattr(ledger, name)))


@pytest.fixture
def shop(server: str) -> DatasetClient:
    """A dataset of orders and stock."""
    # Imported here because Django must be set up first.
    from tests.analytics.dataset_client import make_dataset

    return make_dataset(server)
