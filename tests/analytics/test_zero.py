"""Two rows that are changed together are always seen together, whatever the pipeline does."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from analytics.pipeline.coordinator import Coordinator
from analytics.pipeline.workers import ThreadWorkers
from tests.analytics.zero_sums import Readers, write
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.analytics.dataset_client import DatasetClient

UPLOADS = 30


@contextmanager
def running() -> Iterator[None]:
    coordinator = Coordinator(ThreadWorkers(), lambda: None)
    coordinator._thread.start()
    try:
        yield
    finally:
        coordinator.end()


def test_the_sum_is_always_zero(
    shop: DatasetClient, settings_environment: pytest.MonkeyPatch
) -> None:
    settings_environment.setenv("RILLBASE_ANALYTICS_BATCH_AGE_S", "0")
    settings_environment.setenv("RILLBASE_ANALYTICS_AUTHORITY_AGE_S", "0.3")
    readers = Readers(shop, 2)
    writer = threading.Thread(target=write, args=(shop, range(1, UPLOADS + 1), random.Random(1)))
    with readers:
        writer.start()
        # Coordinators take over from each other while uploads continue.
        while writer.is_alive():
            with running():
                writer.join(timeout=1.0)
        with running():
            wait_until(
                lambda: shop.query("stock", freshness="any")["state"] == UPLOADS,
                what="the authority to have every upload",
            )
    assert readers.answers > 0
    assert shop.rows("stock", freshness="any", columns=["item", "pieces"]) == [
        {"item": item, "pieces": UPLOADS * (1 if item == 1 else -1)} for item in (1, 2)
    ]
