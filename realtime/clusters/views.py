"""`/api/v1/tenants/{tenant}/cluster`: the grid that matches the tenant's live queries.

It is either the shared grid or a dedicated one. Of the shared grid, only the state of its nodes is
shown, not what they match.
"""

from __future__ import annotations

from functools import partial
from typing import ClassVar, cast

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.errors import NotFound
from foundation.json_types import JsonObject
from realtime.clusters import actions, epochs, grids, proposal
from realtime.clusters.describe import SHARED, describe
from realtime.clusters.forms import ClusterChange, ClusterCreation
from realtime.clusters.kubernetes.cluster_spec import NODES_OF_EXECUTOR, SIZES
from realtime.models import Cluster
from tenants.api.base import TenantView, find_for_change
from tenants.models import Tenant
from tenants.roles import Role

TAG = "Subscriptions"
operation = partial(extend_schema, tags=[TAG])


class NodeAnswer(serializers.Serializer[object]):
    """A node of the grid. Figures are null if it does not report them."""

    name = serializers.CharField()
    kind = serializers.ChoiceField(["filter", "sort"])
    query_partition = serializers.IntegerField()
    write_partition = serializers.IntegerField(allow_null=True, help_text="Null for the sort node.")
    state = serializers.CharField(help_text="`running`, `rebuilding`, …; `absent`: not present.")
    busy = serializers.FloatField(
        allow_null=True, help_text="Share of a core over the last minute; null if not known yet."
    )
    lag_ms = serializers.FloatField(
        allow_null=True, help_text="How far the node lags behind the writes."
    )
    queries = serializers.IntegerField(allow_null=True)
    matched = serializers.IntegerField(
        allow_null=True, help_text="Number of documents matched since the node started."
    )
    memory_bytes = serializers.IntegerField(allow_null=True)
    rebuilds = serializers.IntegerField(allow_null=True)


class GridAnswer(serializers.Serializer[object]):
    """A grid epoch. During a resize there are two."""

    epoch = serializers.IntegerField()
    query_partitions = serializers.IntegerField()
    write_partitions = serializers.IntegerField()
    nodes = NodeAnswer(many=True)


class ConditionAnswer(serializers.Serializer[object]):
    """A condition of the dedicated grid, and its reason."""

    type = serializers.CharField()
    status = serializers.ChoiceField(["True", "False", "Unknown"])
    reason = serializers.CharField()
    message = serializers.CharField()
    last_transition_at = serializers.DateTimeField()


class ProposalAnswer(serializers.Serializer[object]):
    """A size that fits the load of the nodes better. Nothing is resized automatically."""

    write_partitions = serializers.IntegerField()
    query_partitions = serializers.IntegerField()
    reason = serializers.ChoiceField(["busy", "late", "memory", "calm"])
    message = serializers.CharField()


class ClusterAnswer(serializers.Serializer[object]):
    """The grids that serve the tenant. Fields of a dedicated grid are null if there is none."""

    launcher = serializers.ChoiceField(["shared", "kubernetes"])
    state = serializers.ChoiceField(["shared", *Cluster.State.values])
    write_partitions = serializers.IntegerField(allow_null=True)
    query_partitions = serializers.IntegerField(allow_null=True)
    node_size = serializers.ChoiceField(Cluster.NodeSize.choices, allow_null=True)
    tier = serializers.ChoiceField(Cluster.Tier.choices, allow_null=True)
    image = serializers.CharField(allow_null=True)
    idle_after_s = serializers.IntegerField(allow_null=True)
    proposal = ProposalAnswer(allow_null=True)
    conditions = ConditionAnswer(many=True)
    version = serializers.IntegerField(allow_null=True)
    created_at = serializers.DateTimeField(allow_null=True)
    updated_at = serializers.DateTimeField(allow_null=True)
    grids = GridAnswer(many=True)


_NEW_CLUSTER = OpenApiExample(
    "Four write partitions on larger machines",
    {"write_partitions": 4, "node_size": "medium", "tier": "guaranteed", "idle_after_s": None},
    request_only=True,
)


class ClusterView(TenantView):
    """The matching grid."""

    roles: ClassVar = {
        "GET": Role.VIEWER,
        "POST": Role.ADMIN,
        "PATCH": Role.ADMIN,
        "DELETE": Role.ADMIN,
    }

    @operation(
        "cluster_read", summary="Read the state of the matching grid", responses=ClusterAnswer
    )
    def get(self, request: Request, tenant: str) -> Response:
        cluster = Cluster.objects.first()
        # The state of nodes changes constantly, so a version would be meaningless.
        return Response(self._describe(cluster))

    @operation(
        "cluster_create",
        summary="Create a dedicated grid",
        description="The grid takes about a minute to start; until then, the shared grid serves "
        "the tenant.",
        request=ClusterCreation,
        responses={202: ClusterAnswer},
        examples=[_NEW_CLUSTER],
    )
    def post(self, request: Request, tenant: str) -> Response:
        values = cast("actions.ClusterValues", self.body(ClusterCreation))
        return self._accept(actions.do_create(self.principal, self._owner(), values))

    @operation(
        "cluster_change",
        summary="Change the dedicated grid",
        description="If the number of partitions changes, a second grid starts beside the current "
        "one and takes over once all of its nodes are ready.",
        request=ClusterChange,
        responses={202: ClusterAnswer},
    )
    def patch(self, request: Request, tenant: str) -> Response:
        values = cast("actions.ClusterValues", self.body(ClusterChange, partial=True))
        owner = self._owner()
        cluster = self._own(request)
        actions.do_change(self.principal, owner, cluster, values)
        return self._accept(cluster)

    @operation(
        "cluster_delete",
        summary="Delete the dedicated grid",
        description="The shared grid takes over; then all objects of the dedicated grid are "
        "removed.",
        responses={202: ClusterAnswer},
    )
    def delete(self, request: Request, tenant: str) -> Response:
        cluster = self._own(request)
        actions.do_delete(self.principal, cluster)
        return self._accept(cluster)

    def _owner(self) -> Tenant:
        return Tenant.objects.select_related("plan", "quota").get(pk=self.tenant.id)

    def _describe(self, cluster: Cluster | None) -> JsonObject:
        return {
            **(SHARED if cluster is None else describe(cluster)),
            "proposal": None if cluster is None else _proposal(cluster),
            "grids": grids.grids(self.tenant.id),
        }

    @staticmethod
    def _own(request: Request) -> Cluster:
        try:
            return find_for_change(request, Cluster.objects.all())
        except NotFound:
            raise NotFound("The tenant has no dedicated grid.") from None

    def _accept(self, cluster: Cluster) -> Response:
        return self.one(
            self._describe(cluster), cluster.version, status=202, location=self.url("cluster")
        )


def _proposal(cluster: Cluster) -> JsonObject | None:
    """Return the proposal for a cluster, once its current specification is in effect."""
    serving = epochs.of_tenant(cluster.tenant_id)
    if not serving or serving[-1].size != cluster.size:
        return None
    memory_bytes = SIZES[cluster.node_size].overhead_mib * proposal.MIB // NODES_OF_EXECUTOR
    better = proposal.propose(cluster.size, grids.loads(serving[-1]), memory_bytes)
    if better is None:
        return None
    return {
        "write_partitions": better.size.write_partitions,
        "query_partitions": better.size.query_partitions,
        "reason": better.reason,
        "message": better.message,
    }


urlpatterns = [path("tenants/<str:tenant>/cluster", ClusterView.as_view())]
