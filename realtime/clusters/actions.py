"""Create, change and delete a cluster. Reconciliation executes what these record."""

from __future__ import annotations

from typing import TypedDict

from django.utils import timezone

from foundation.environment import environment
from foundation.errors import ClusterExists, ClustersNotOffered, QuotaExceeded
from foundation.json_types import JsonObject
from foundation.tasks import run_after_commit
from realtime.clusters.describe import describe
from realtime.grid.size import GridSize
from realtime.models import Cluster
from tenants import audit
from tenants.models import Tenant
from tenants.principals import Principal
from tenants.quotas import effective_limits

RECONCILE_TASK = "realtime.clusters.reconcile"
LIMIT = "cluster_write_partitions"


class ClusterValues(TypedDict, total=False):
    """The fields of a validated body."""

    write_partitions: int
    query_partitions: int
    node_size: str
    tier: str
    image: str | None
    idle_after_s: int | None


def do_create(principal: Principal | None, tenant: Tenant, values: ClusterValues) -> Cluster:
    """Request a dedicated cluster for the tenant."""
    if environment().rillbase_clusters == "off":
        raise ClustersNotOffered
    # The second of two concurrent callers waits here, then sees the cluster of the first.
    Tenant.objects.select_for_update().get(pk=tenant.pk)
    existing = Cluster.objects.first()
    if existing is not None:
        raise ClusterExists(
            "The previous grid is still being removed." if existing.deleting else ""
        )
    _ensure_room(tenant, GridSize(values["write_partitions"], values["query_partitions"]))
    cluster = Cluster(tenant=tenant, due_at=timezone.now(), **_columns(values))
    cluster.save()
    _schedule_reconcile(cluster)
    _record(principal, "cluster.created", cluster, after=describe(cluster))
    return cluster


def do_change(
    principal: Principal | None, tenant: Tenant, cluster: Cluster, values: ClusterValues
) -> None:
    """Change a locked cluster."""
    before = describe(cluster)
    if cluster.deleting:
        raise ClusterExists("The grid is being removed.")
    _ensure_room(
        tenant,
        GridSize(
            values.get("write_partitions", cluster.write_partitions),
            values.get("query_partitions", cluster.query_partitions),
        ),
    )
    for name, value in _columns(values).items():
        setattr(cluster, name, value)
    _next(cluster)
    _record(principal, "cluster.updated", cluster, before=before, after=describe(cluster))


def do_delete(principal: Principal | None, cluster: Cluster) -> None:
    """Mark a locked cluster for deletion. The row is kept until all objects are removed."""
    if cluster.deleting:
        return
    before = describe(cluster)
    cluster.deleting, cluster.state = True, Cluster.State.DELETING
    _next(cluster)
    _record(principal, "cluster.deleted", cluster, before=before)


def _next(cluster: Cluster) -> None:
    """Schedule the reconciliation of a new version, regardless of earlier failures."""
    cluster.failures, cluster.due_at = 0, timezone.now()
    cluster.save_next_version()
    _schedule_reconcile(cluster)


def _schedule_reconcile(cluster: Cluster) -> None:
    tenant_id = cluster.tenant_id
    run_after_commit(RECONCILE_TASK, {"tenant": str(tenant_id)}, tenant_id=tenant_id)


def _ensure_room(tenant: Tenant, size: GridSize) -> None:
    """Check the quota, which limits the number of nodes in both dimensions together."""
    allowed = effective_limits(tenant)[LIMIT]
    if size.filter_nodes > allowed:
        raise QuotaExceeded(
            f"The tenant's quota allows a grid of at most {allowed} write partitions."
            if allowed
            else "The tenant's plan does not include a dedicated grid."
        )


def _columns(values: ClusterValues) -> dict[str, object]:
    """Return the columns of the row; a missing image is stored as an empty name."""
    columns = dict[str, object](values)
    if "image" in columns:
        columns["image"] = columns["image"] or ""
    return columns


def _record(
    principal: Principal | None,
    action: str,
    cluster: Cluster,
    *,
    before: JsonObject | None = None,
    after: JsonObject | None = None,
) -> None:
    target = audit.AuditTarget("cluster", str(cluster.pk))
    audit.record(principal, action, target, before=before, after=after)
