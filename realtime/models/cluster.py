"""Dedicated grids of tenants."""

from __future__ import annotations

from django.db import models

from foundation.resource import Resource
from foundation.scope import TenantOwned
from realtime.grid.size import GridSize
from tenants.models import Tenant


class Cluster(TenantOwned, Resource):
    """The specification of a tenant's dedicated grid, and its state. Callers change the
    specification, and with it the version; reconciliation writes the state and does not change the
    version.
    """

    class NodeSize(models.TextChoices):
        SMALL = "small"
        MEDIUM = "medium"
        LARGE = "large"

    class Tier(models.TextChoices):
        #: May use more than it requests while its machine has capacity to spare.
        BURSTABLE = "burstable"
        #: Reserves all that it may use.
        GUARANTEED = "guaranteed"

    class State(models.TextChoices):
        PENDING = "pending"
        RUNNING = "running"
        RESIZING = "resizing"
        #: Stopped, since there have been no subscribers for a while.
        IDLE = "idle"
        FAILING = "failing"
        DELETING = "deleting"

    tenant = models.OneToOneField(Tenant, on_delete=models.CASCADE, related_name="cluster")
    write_partitions = models.PositiveSmallIntegerField()
    query_partitions = models.PositiveSmallIntegerField(default=1)
    node_size = models.CharField(max_length=10, choices=NodeSize.choices)
    tier = models.CharField(max_length=10, choices=Tier.choices)
    #: The name of an image that the installation offers; empty: the first one.
    image = models.CharField(max_length=63, blank=True)
    #: How long without a live query until the cluster is stopped; null: it always runs.
    idle_after_s = models.PositiveIntegerField(null=True)
    deleting = models.BooleanField(default=False)

    state = models.CharField(max_length=10, choices=State.choices, default=State.PENDING)
    #: As in Kubernetes: type, status, reason, message, last_transition_at.
    conditions = models.JSONField(default=list)
    #: Since when there has been no live query; null: there is one.
    quiet_since = models.DateTimeField(null=True)
    #: Reconciliations in a row that have failed.
    failures = models.PositiveIntegerField(default=0)
    #: When it is reconciled next.
    due_at = models.DateTimeField(db_index=True)

    @property
    def size(self) -> GridSize:
        """The desired size of the grid."""
        return GridSize(self.write_partitions, self.query_partitions)

    def __str__(self) -> str:
        return f"cluster of {self.tenant_id}"
