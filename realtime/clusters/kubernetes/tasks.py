"""The tasks that reconcile clusters: one per tenant, and sweeps that find which are due.

They have a separate queue, so that only workers that may call Kubernetes take them.
"""

from __future__ import annotations

import logging
from uuid import UUID

from django.utils import timezone
from redis.exceptions import RedisError

from foundation.errors import Unavailable
from foundation.tasks import task
from foundation.tasks.app import app
from foundation.tasks.definition import PERIODIC
from foundation.tasks.queues import queue_of
from realtime.clusters import epochs, grids
from realtime.clusters.actions import RECONCILE_TASK
from realtime.clusters.kubernetes import reconcile
from realtime.clusters.kubernetes.connection import api_server
from realtime.clusters.kubernetes.server import ApiServerUnavailable
from realtime.models import Cluster

log = logging.getLogger(__name__)

SWEEP_TASK, ORPHANS_TASK = "realtime.clusters.sweep", "realtime.clusters.orphans"
#: Clusters that one sweep schedules.
AT_ONCE = 200
#: A cluster that is still due after this time is scheduled again; messages must not accumulate
#: while no worker takes them.
MESSAGE_LIFETIME_S = 10.0


@task(name=RECONCILE_TASK, policy=PERIODIC, quiet=True)
def reconcile_cluster(*, tenant: str) -> None:
    """Advance the reconciliation of a tenant's cluster. The row contains the time of the next
    attempt.
    """
    tenant_id = UUID(tenant)
    try:
        with api_server() as server:
            reconcile.reconcile(tenant_id, server)
    except ApiServerUnavailable as error:
        cluster = reconcile.claim(tenant_id)
        if cluster is not None:
            reconcile.note_failure(cluster, error)


@task(name=SWEEP_TASK, policy=PERIODIC, quiet=True)
def sweep() -> None:
    """Schedule due clusters, the longest waiting first."""
    _wake()
    rows = Cluster.unscoped.using(reconcile.ALIAS).filter(due_at__lte=timezone.now())
    for tenant_id in rows.order_by("due_at").values_list("tenant_id", flat=True)[:AT_ONCE]:
        arguments = {"tenant": str(tenant_id)}
        app.send_task(
            RECONCILE_TASK,
            kwargs=arguments,
            queue=queue_of(RECONCILE_TASK),
            expires=MESSAGE_LIFETIME_S,
            retry=False,
        )


def _wake() -> None:
    """Schedule clusters that have subscribers and are not running."""
    rows = Cluster.unscoped.using(reconcile.ALIAS).filter(state=Cluster.State.IDLE)
    for tenant_id in rows.values_list("tenant_id", flat=True):
        try:
            watched = any(grids.queries(own.grid) for own in epochs.dedicated_epochs(tenant_id))
        except (RedisError, Unavailable) as error:
            log.info("the live queries of a grid cannot be counted: %s", error)
            return
        if watched:
            rows.filter(tenant_id=tenant_id).update(due_at=timezone.now())


@task(name=ORPHANS_TASK, policy=PERIODIC)
def remove_orphans() -> None:
    """Remove namespaces that belong to no cluster any more, of deleted tenants or lost rows."""
    with api_server() as server:
        for namespace in reconcile.orphans(server):
            log.warning("%s belongs to no tenant and is removed", namespace)
            server.delete(namespace)
