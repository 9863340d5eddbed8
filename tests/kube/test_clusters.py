"""Tenants' clusters in a real Kubernetes: created, resized, put to sleep, woken and removed.

The drivers' pods are processes of this machine that run the very grid epochs that the objects say,
so that tenants' live queries are really watched by them.
"""

from __future__ import annotations

import asyncio
import datetime
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.kube.drivers import Drivers, SparkDrivers, running_drivers
from tests.kube.tenant_clusters import START_S, TenantClusters, changed_objects, true_conditions
from tests.make import TenantAccount
from tests.waiting import wait_until

if TYPE_CHECKING:
    from realtime.grid.layout import GridEpoch
    from tests.kube.control_plane import ControlPlane

pytestmark = [pytest.mark.kube, pytest.mark.timeout(900)]


@pytest.fixture
def drivers(plane: ControlPlane, tmp_path: Path, valkey_url: str) -> Iterator[Drivers]:
    result = Drivers(plane)
    with running_drivers(result, plane, tmp_path, valkey_url):
        yield result


@pytest.fixture
def spark_drivers(plane: ControlPlane, tmp_path: Path, valkey_url: str) -> Iterator[SparkDrivers]:
    result = SparkDrivers(plane, tmp_path)
    with running_drivers(result, plane, tmp_path, valkey_url):
        yield result


def test_a_cluster_comes_up_is_resized_sleeps_wakes_and_leaves_nothing(
    tenants: TenantClusters, drivers: Drivers, server: str
) -> None:
    from realtime.clusters import epochs, grids
    from tests.documents.collection import make_collection
    from tests.realtime.client import greeted
    from tests.realtime.live.answer import begin, subscribe

    account = tenants.make(write_partitions=1, idle_after_s=60)
    tenants.until(account, "running")

    def all_hold() -> bool:
        tenants.reconcile(account)
        return true_conditions(tenants, account) == {"Applied", "Running", "Watching"}

    # Nodes may watch before the readiness of their pod has been noticed.
    wait_until(all_hold, what="all conditions to hold", timeout_s=START_S)
    assert changed_objects(tenants.reconcile(account)) == {}

    todos = make_collection(server, account=account)
    key = todos.caller.headers["Authorization"].removeprefix("Bearer ")
    with greeted(server, key) as client:
        answer = subscribe(client, "s", collection=todos.name)
        (before,) = epochs.of_tenant(account.tenant.pk)
        # The server may learn of the grid after the subscription, which it then moves there.
        wait_until(lambda: grids.queries(before) == 1, what="the query to be in the tenant's grid")
        todos.insert({"_id": "a"})
        answer.until_shows([{"_id": "a"}])
        n_frames = len(answer.frames)
        assert drivers.is_ready(before.epoch)

        after = _resize(tenants, account, before)
        todos.insert({"_id": "b"})
        answer.until_shows([{"_id": "a"}, {"_id": "b"}])
        resets = [frame for frame in answer.frames[n_frames:] if frame["type"] == "reset"]
        assert resets == []

    _fall_asleep(tenants, account, after)

    with greeted(server, key) as client:
        answer = begin(client, "s", collection=todos.name)
        wait_until(lambda: grids.queries(after) == 1, what="the query to be registered")
        tenants.until(account, "running")
        answer.until("ready")
        todos.insert({"_id": "c"})
        answer.until_shows([{"_id": "a"}, {"_id": "b"}, {"_id": "c"}])

    _remove(tenants, account)
    assert tenants.namespace(account) not in tenants.plane.kubectl("get", "namespaces")
    assert epochs.dedicated_epochs(account.tenant.pk) == []
    assert tenants.details(account)["launcher"] == "shared"
    assert tenants.call(account, "POST", {}) == 202


def test_spark_creates_executors_within_the_tenants_quota(
    tenants: TenantClusters, spark_drivers: SparkDrivers, server: str
) -> None:
    from tests.documents.collection import make_collection
    from tests.realtime.client import greeted
    from tests.realtime.live.answer import subscribe

    account = tenants.make(write_partitions=1)
    tenants.until(account, "running")
    (executor,) = tenants.names(account, "pods", "--selector=spark-role=executor")
    body = json.loads(tenants.kubectl(account, "get", executor, "--output", "json"))
    (owner,) = body["metadata"]["ownerReferences"]
    assert owner["name"].startswith("grid-")
    assert body["metadata"]["labels"]["rillbase.dev/tenant"] == account.slug
    assert body["spec"]["serviceAccountName"] == "executor"
    assert os.environ["RILLBASE_SECRET_KEY"] not in json.dumps(body)
    used = json.loads(tenants.kubectl(account, "get", "resourcequota/cluster", "--output", "json"))
    assert used["status"]["used"]["pods"] == "2"

    todos = make_collection(server, account=account)
    key = todos.caller.headers["Authorization"].removeprefix("Bearer ")
    with greeted(server, key) as client:
        answer = subscribe(client, "s", collection=todos.name)
        todos.insert({"_id": "a"})
        answer.until_shows([{"_id": "a"}])
        tenants.kubectl(account, "delete", executor, "--wait=false")
        wait_until(lambda: executor not in tenants.names(account, "pods"), what="the pod to go")
        todos.insert({"_id": "b"})
        answer.until_shows([{"_id": "a"}, {"_id": "b"}], timeout_s=START_S)
        assert len(tenants.names(account, "pods", "--selector=spark-role=executor")) == 1


def test_a_driver_that_cannot_reach_the_api_server_reports_it_and_starts_when_it_can(
    tenants: TenantClusters, spark_drivers: SparkDrivers
) -> None:
    spark_drivers.master = "k8s://https://nowhere.invalid"
    account = tenants.make(write_partitions=1)

    def reported() -> dict[str, str]:
        tenants.reconcile(account)
        conditions = tenants.details(account)["conditions"]
        return {
            condition["reason"]: condition["message"]
            for condition in conditions
            if condition["status"] == "False"
        }

    wait_until(lambda: "CannotStart" in reported(), what="the cause", timeout_s=START_S)
    assert "UnknownHostException: nowhere.invalid" in reported()["CannotStart"]
    assert tenants.details(account)["state"] == "pending"

    spark_drivers.master = f"k8s://{tenants.plane.url}"
    tenants.kubectl(account, "delete", "pods", "--all", "--wait=false")
    tenants.until(account, "running")
    assert "CannotStart" not in reported()


def _resize(tenants: TenantClusters, account: TenantAccount, before: GridEpoch) -> GridEpoch:
    """Start a grid of another size beside the first one, which is removed when the new one is
    ready.
    """
    from realtime.clusters import epochs

    assert tenants.call(account, "PATCH", {"write_partitions": 3}) == 202
    tenants.reconcile(account)
    assert tenants.details(account)["state"] == "resizing"
    assert len(tenants.names(account, "deployments")) == 2
    tenants.until(account, "running")
    (after,) = epochs.of_tenant(account.tenant.pk)
    assert (after.write_partitions, after.epoch > before.epoch) == (3, True)
    assert tenants.names(account, "deployments") == [f"deployment.apps/grid-{after.epoch}"]
    return after


def _fall_asleep(tenants: TenantClusters, account: TenantAccount, grid: GridEpoch) -> None:
    """Simulate a long time without subscribers, by shortening the two minutes for which queries are
    kept.
    """
    from realtime.clusters import grids

    def forgotten() -> bool:
        asyncio.run(_expire(grid))
        return grids.queries(grid) == 0

    wait_until(forgotten, what="the query to end")
    tenants.reconcile(account)
    long_ago = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    tenants.rows(account).update(quiet_since=long_ago)
    tenants.reconcile(account)
    assert tenants.details(account)["state"] == "idle"
    wait_until(lambda: tenants.names(account, "pods") == [], what="the pods to go")


async def _expire(grid: GridEpoch) -> None:
    from foundation.valkey_wire import ValkeyWire

    wire = ValkeyWire(os.environ["REDIS_URL"], connect_timeout_s=10, answer_timeout_s=10)
    await grid.layer(wire).expire(1, ttl_ms=0)
    await wire.aclose()


def _remove(tenants: TenantClusters, account: TenantAccount) -> None:
    assert tenants.call(account, "DELETE") == 202
    tenants.reconcile(account)
    assert tenants.details(account)["state"] == "deleting"

    def is_gone() -> bool:
        if tenants.rows(account).exists():
            tenants.reconcile(account)
        return not tenants.rows(account).exists()

    wait_until(is_gone, what="the cluster to be gone", timeout_s=START_S)
