"""`/api/v1/tenants/{tenant}/cluster`: the grid that matches the tenant's live queries.

All tenants share it, so it shows nothing of what is matched, only how the nodes stand.
"""

from __future__ import annotations

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from realtime.cluster import reading
from tenants.api.base import TenantView

TAG = "Subscriptions"


class NodeAnswer(serializers.Serializer[object]):
    """A node of the grid. Figures are null where it says nothing."""

    name = serializers.CharField()
    kind = serializers.ChoiceField(["filter", "sort"])
    query_partition = serializers.IntegerField()
    write_partition = serializers.IntegerField(allow_null=True, help_text="Null: the sort node.")
    state = serializers.CharField(help_text="`running`, `rebuilding`, …; `absent`: nobody is it.")
    lag_ms = serializers.FloatField(allow_null=True, help_text="How far behind the writes it is.")
    queries = serializers.IntegerField(allow_null=True)
    matched = serializers.IntegerField(allow_null=True, help_text="Documents since it began.")
    memory_bytes = serializers.IntegerField(allow_null=True)
    rebuilds = serializers.IntegerField(allow_null=True)


class GridAnswer(serializers.Serializer[object]):
    """A grid epoch. While the grid is resized there are two."""

    epoch = serializers.IntegerField()
    query_partitions = serializers.IntegerField()
    write_partitions = serializers.IntegerField()
    nodes = NodeAnswer(many=True)


class ClusterAnswer(serializers.Serializer[object]):
    """The grids that are served."""

    grids = GridAnswer(many=True)


class ClusterView(TenantView):
    """The matching grid."""

    @extend_schema(
        operation_id="cluster_read",
        tags=[TAG],
        summary="Look at the matching grid",
        responses=ClusterAnswer,
    )
    def get(self, request: Request, tenant: str) -> Response:
        return Response({"grids": reading.grids()})


urlpatterns = [path("tenants/<str:tenant>/cluster", ClusterView.as_view())]
