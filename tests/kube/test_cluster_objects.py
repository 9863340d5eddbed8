"""A tenant's objects in a real API server: made, kept, repaired, resized.

The short form of `test_reconciliation.py`: nothing runs, so an API server and etcd will do.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from realtime.grid.size import GridSize

if TYPE_CHECKING:
    from realtime.clusters.kubernetes.cluster_spec import ClusterSpec
    from realtime.clusters.kubernetes.server import ApiServer
    from tests.kube.control_plane import ControlPlane

pytestmark = [pytest.mark.kube, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def keeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """An API server that keeps objects, of which nothing comes."""
    # The client of Kubernetes takes seconds to import.
    from tests.kube.control_plane import KEEPING, started

    running = started(tmp_path_factory.mktemp("keeper"), KEEPING)
    yield running
    running.close()


@pytest.fixture
def server(keeper: ControlPlane) -> ApiServer:
    from realtime.clusters.kubernetes.server import ApiServer

    return ApiServer(keeper.api())


@pytest.fixture
def wanted() -> ClusterSpec:
    from tests.realtime.clusters.cluster_specs import USUAL

    return replace(USUAL, tenant_id=uuid4())


def verbs(steps: list[Any]) -> Counter[str]:
    return Counter(str(step.verb) for step in steps)


def test_objects_are_created_once_and_then_unchanged(
    server: ApiServer, wanted: ClusterSpec
) -> None:
    from realtime.clusters.kubernetes.steps import apply_steps, preview_steps

    planned = list(preview_steps(server, wanted))
    applied = list(apply_steps(server, wanted))
    assert [step.object for step in applied] == [step.object for step in planned]
    assert verbs(planned) == verbs(applied) == {"create": len(applied)}
    for steps in (list(apply_steps(server, wanted)), list(preview_steps(server, wanted))):
        assert verbs(steps) == {"keep": len(applied)}


def test_manual_changes_of_objects_are_reverted(
    keeper: ControlPlane, server: ApiServer, wanted: ClusterSpec
) -> None:
    from realtime.clusters.kubernetes.steps import apply_steps, preview_steps

    list(apply_steps(server, wanted))

    def by_hand(*arguments: str) -> None:
        keeper.kubectl("--namespace", wanted.namespace, *arguments)

    by_hand("scale", "deployment/grid-1001", "--replicas=3")
    sidecar = {"spec": {"template": {"spec": {"containers": [{"name": "spy", "image": "spy"}]}}}}
    by_hand("patch", "deployment/grid-1001", "--patch", json.dumps(sidecar))
    by_hand("patch", "secret/grid", "--patch", json.dumps({"data": {"ADDED": "Ynk="}}))
    by_hand("delete", "networkpolicy/closed")
    by_hand("label", "deployment/grid-1001", "team=theirs")

    expected = {
        "deployment/grid-1001": "change",
        "secret/grid": "change",
        "networkpolicy/closed": "create",
    }
    for steps in (list(preview_steps(server, wanted)), list(apply_steps(server, wanted))):
        result = {str(step.object): str(step.verb) for step in steps if str(step.verb) != "keep"}
        assert result == expected
    assert verbs(list(apply_steps(server, wanted))).keys() == {"keep"}
    (driver,) = server.find("Deployment", wanted.namespace, {})
    shown = json.dumps(driver["spec"])
    assert "spy" not in shown
    assert '"team": "theirs"' in json.dumps(driver["metadata"])
    (secret,) = server.find("Secret", wanted.namespace, {})
    assert isinstance(secret["data"], dict)
    assert set(secret["data"]) == set(wanted.secrets)


def test_the_objects_of_a_retired_grid_are_removed(server: ApiServer, wanted: ClusterSpec) -> None:
    from realtime.clusters.kubernetes.cluster_spec import GridSpec
    from realtime.clusters.kubernetes.steps import apply_steps

    first, second = GridSpec(1001, GridSize(2)), GridSpec(1002, GridSize(4))
    list(apply_steps(server, replace(wanted, grids=(first,))))
    both = list(apply_steps(server, replace(wanted, grids=(first, second))))
    assert {str(step.object) for step in both if str(step.verb) == "create"} == {
        "configmap/grid-1002",
        "service/grid-1002",
        "deployment/grid-1002",
        "poddisruptionbudget/grid-1002-executors",
    }
    last = list(apply_steps(server, replace(wanted, grids=(second,))))
    assert {str(step.object) for step in last if str(step.verb) == "delete"} == {
        "configmap/grid-1001",
        "service/grid-1001",
        "deployment/grid-1001",
        "poddisruptionbudget/grid-1001-executors",
    }


def test_two_tenants_objects_are_reconciled_separately(
    server: ApiServer, wanted: ClusterSpec
) -> None:
    from realtime.clusters.kubernetes.steps import apply_steps

    list(apply_steps(server, wanted))
    other = replace(wanted, tenant_id=uuid4(), slug="other")
    assert verbs(list(apply_steps(server, other))).keys() == {"create"}
    assert verbs(list(apply_steps(server, wanted))).keys() == {"keep"}
