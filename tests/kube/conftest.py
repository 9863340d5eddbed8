"""A Kubernetes API server for the session, and a node on which the chart's pods appear to run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.kube.control_plane import ControlPlane


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A real API server with its controllers."""
    # Importing the Kubernetes client takes seconds.
    from tests.kube.control_plane import started

    running = started(tmp_path_factory.mktemp("kubernetes"))
    yield running
    running.close()
