"""When clusters are reconciled, also while Kubernetes is unavailable."""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Iterator
from uuid import UUID

import pytest
import redis
from django.db import models
from django.utils import timezone

from foundation.scope import scoped
from realtime.clusters import epochs
from realtime.clusters.kubernetes import reconcile, tasks
from realtime.clusters.kubernetes.server import ApiServerUnavailable
from realtime.events import layer
from realtime.grid.size import GridSize
from realtime.models import Cluster
from rillbase_server.celery import beat_schedule
from tests.make import make_tenant

FAR = datetime.timedelta(days=1)
QUEUE = "clusters"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A cluster that is due in a day, so that only this test reconciles it."""
    account = make_tenant(plan="dedicated")
    with scoped(tenant_id=account.tenant.id):
        row = Cluster.objects.create(
            write_partitions=1,
            node_size="small",
            tier="burstable",
            idle_after_s=60,
            due_at=timezone.now() + FAR,
        )
    yield row
    epochs.disown(row.tenant_id)
    rows(row.tenant_id).delete()


@pytest.fixture
def valkey(valkey_url: str) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(valkey_url, decode_responses=True) as client:
        client.delete(QUEUE)
        yield client
        client.delete(QUEUE)


def rows(tenant_id: UUID) -> models.QuerySet[Cluster]:
    return Cluster.unscoped.using("relay").filter(tenant_id=tenant_id)


def current(row: Cluster) -> Cluster:
    return Cluster.unscoped.using("relay").get(pk=row.pk)


def sent(valkey: redis.Redis) -> list[str]:
    """Return the tenants whose clusters have been sent to the workers that may look after them."""
    messages = valkey.lrange(QUEUE, 0, -1)
    return [message for message in messages if isinstance(message, str)]


def test_due_clusters_are_sent_to_the_queue_of_the_provisioner(
    cluster: Cluster, valkey: redis.Redis
) -> None:
    tasks.sweep()
    assert not any(str(cluster.tenant_id) in _arguments(message) for message in sent(valkey))
    rows(cluster.tenant_id).update(due_at=timezone.now())
    tasks.sweep()
    (message,) = [
        candidate for candidate in sent(valkey) if str(cluster.tenant_id) in _arguments(candidate)
    ]
    assert json.loads(message)["headers"]["task"] == "realtime.clusters.reconcile"


def _arguments(message: str) -> str:
    return base64.b64decode(json.loads(message)["body"]).decode()


def test_without_kubernetes_the_row_reports_it_and_the_run_is_retried(
    cluster: Cluster, settings_environment: pytest.MonkeyPatch
) -> None:
    settings_environment.setenv("RILLBASE_CLUSTERS_KUBECONFIG", "/nonexistent/kubeconfig")
    pauses_s = []
    for failures in (1, 2, 3):
        rows(cluster.tenant_id).update(due_at=timezone.now())
        before = timezone.now()
        tasks.reconcile_cluster(tenant=str(cluster.tenant_id))
        row = current(cluster)
        assert (row.failures, row.state) == (failures, "failing")
        pauses_s.append((row.due_at - before).total_seconds())
    (condition,) = current(cluster).conditions
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "Applied",
        "Unknown",
        "ApiServerUnavailable",
    )
    assert "/nonexistent/kubeconfig" in condition["message"]
    # At least half of 2, 4 and 8 seconds.
    assert [pause >= least for pause, least in zip(pauses_s, (1, 2, 4), strict=True)] == [True] * 3


def test_a_cluster_that_was_changed_meanwhile_stays_due(cluster: Cluster) -> None:
    rows(cluster.tenant_id).update(due_at=timezone.now())
    claimed = reconcile.claim(cluster.tenant_id)
    assert claimed is not None
    changed_at = timezone.now()
    rows(cluster.tenant_id).update(version=2, due_at=changed_at)
    reconcile.note_failure(claimed, ApiServerUnavailable("too late"))
    row = current(cluster)
    assert (row.failures, row.due_at) == (0, changed_at)


def test_an_idle_cluster_is_due_when_there_is_a_subscription(
    cluster: Cluster, valkey: redis.Redis
) -> None:
    epochs.add(cluster.tenant_id, GridSize(1))
    (own,) = epochs.dedicated_epochs(cluster.tenant_id)
    epochs.note_ready(own.grid.epoch)
    rows(cluster.tenant_id).update(state="idle")
    tasks.sweep()
    assert current(cluster).due_at == cluster.due_at
    key = layer.registry(own.grid.prefix, own.grid.epoch, 0)
    valkey.hset(key, "query", "definition")
    tasks.sweep()
    assert current(cluster).due_at < cluster.due_at
    valkey.delete(key)


def test_an_existing_grid_gets_no_further_epoch(cluster: Cluster) -> None:
    epochs.add(cluster.tenant_id, GridSize(1))
    (first,) = epochs.dedicated_epochs(cluster.tenant_id)
    for _ in range(3):
        epochs.add(cluster.tenant_id, GridSize(1))
    (expected, other) = epochs.grids_after(cluster.tenant_id, GridSize(2))
    assert expected == first
    epochs.add(cluster.tenant_id, GridSize(2))
    assert [own.grid.epoch for own in epochs.dedicated_epochs(cluster.tenant_id)] == [
        first.grid.epoch,
        first.grid.epoch + 1,
    ]
    assert other.grid.epoch == first.grid.epoch + 1


def test_clusters_are_swept_only_if_there_may_be_some(
    settings_environment: pytest.MonkeyPatch,
) -> None:
    assert beat_schedule()["realtime.clusters.sweep"]["options"] == {"expires": 2.0, "queue": QUEUE}
    settings_environment.setenv("RILLBASE_CLUSTERS", "off")
    assert not [name for name in beat_schedule() if name.startswith("realtime.clusters")]
