from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.foundation.tasks.bench import Bench


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Broker, worker and relay that the module's tests share and leave running."""
    from tests.foundation.tasks.bench import running_bench

    with running_bench(tmp_path_factory.mktemp("bench")) as running:
        running.worker.start()
        yield running


@pytest.fixture
def own_bench(tmp_path: Path) -> Iterator[Bench]:
    """Broker and relay of the test's own; the worker is for the test to start."""
    from tests.foundation.tasks.bench import running_bench

    with running_bench(tmp_path) as running:
        yield running


@pytest.fixture
def bench_without_relay(tmp_path: Path) -> Iterator[Bench]:
    """Broker of the test's own; what relays is for the test to start."""
    from tests.foundation.tasks.bench import running_bench

    with running_bench(tmp_path, relay=False) as running:
        yield running
