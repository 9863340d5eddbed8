"""A Kubernetes API server for the session, and a node on which the chart's pods appear to run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests import machine
from tests.kube.pod_logs import pytest_runtest_makereport  # noqa: F401 -- a hook of these tests
from tests.kube.tenant_clusters import TenantClusters
from tests.make import unique

if TYPE_CHECKING:
    from tests.kube.control_plane import ControlPlane
    from tests.kube.provisioner import Provisioner


@pytest.fixture(scope="session")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A real API server with its controllers."""
    # Importing the Kubernetes client takes seconds.
    from tests.kube.control_plane import started

    running = started(tmp_path_factory.mktemp("kubernetes"))
    yield running
    running.close()


@pytest.fixture(scope="module")
def provisioner(plane: ControlPlane) -> Provisioner:
    machine.helm()
    from tests.kube.provisioner import Provisioner

    return Provisioner(plane, unique("rb")[:20].rstrip("-"))


@pytest.fixture
def tenants(
    provisioner: Provisioner,
    server: str,
    settings_environment: pytest.MonkeyPatch,
) -> Iterator[TenantClusters]:
    settings_environment.setenv("RILLBASE_CLUSTERS_NAME", provisioner.name)
    settings_environment.setenv("RILLBASE_CLUSTERS_NAMESPACE", provisioner.namespace)
    tenants = TenantClusters(provisioner, server)
    yield tenants
    tenants.close()
