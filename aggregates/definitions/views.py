"""`/api/v1/tenants/{tenant}/aggregates`."""

from __future__ import annotations

from functools import partial
from typing import cast

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from aggregates.definitions import actions
from aggregates.definitions.describe import describe
from aggregates.definitions.forms import (
    AggregateChange,
    AggregateCreation,
    MeasureSerializer,
    SourceSerializer,
    TimeSerializer,
)
from aggregates.models import Aggregate
from tenants.api.base import find, find_for_change, page_of
from tenants.api.declared_view import DeclaredView

TAG = "Aggregates"
operation = partial(extend_schema, tags=[TAG])


class Notice(serializers.Serializer[object]):
    """Documents that could not be evaluated."""

    code = serializers.CharField()
    count = serializers.IntegerField()
    detail = serializers.CharField()


class AggregateAnswer(serializers.Serializer[object]):
    """An aggregate."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    dimensions = serializers.ListField(child=serializers.CharField())
    time = TimeSerializer(allow_null=True)
    measures = serializers.DictField(child=MeasureSerializer())
    rollups = serializers.ListField(child=serializers.ListField(child=serializers.CharField()))
    source = SourceSerializer(allow_null=True)  # type: ignore[assignment]
    retention = serializers.CharField(allow_null=True)
    state = serializers.ChoiceField(Aggregate.State.choices)
    error = serializers.CharField(allow_null=True)
    generation = serializers.IntegerField(
        allow_null=True,
        help_text="Generation of the rows that queries read. Each change and each rebuild starts "
        "a new one.",
    )
    documents_read = serializers.IntegerField(
        allow_null=True, help_text="Of a view: documents read by the current or the last build."
    )
    notices = Notice(
        many=True,
        help_text="Of a view: versions of documents that are missing since its rows were built.",
    )
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


_NEW_AGGREGATE = OpenApiExample(
    "Requests to each customer's endpoints",
    {
        "name": "requests_5m",
        "dimensions": ["customer", "app", "endpoint"],
        "time": {"field": "at", "bucket": "5m"},
        "measures": {
            "count": {"op": "count"},
            "latency": {"op": "avg", "field": "latency_ms"},
            "peak": {"op": "max", "field": "latency_ms"},
        },
        "rollups": [["customer"], ["customer", "app"]],
        "retention": "90d",
    },
    request_only=True,
)


class _AggregatesView(DeclaredView):
    kind = "aggregates"


class AggregatesView(_AggregatesView):
    """The aggregates of a tenant."""

    @operation("aggregates_list", summary="List aggregates", responses=page_of(AggregateAnswer))
    def get(self, request: Request, tenant: str) -> Response:
        return self.listed(request, Aggregate.objects.all(), describe)

    @operation(
        "aggregates_create",
        summary="Create an aggregate",
        request=AggregateCreation,
        responses={201: AggregateAnswer},
        examples=[_NEW_AGGREGATE],
    )
    def post(self, request: Request, tenant: str) -> Response:
        values = cast("actions.AggregateValues", self.body(AggregateCreation))
        aggregate = actions.do_create(self.principal, self.owner(), values)
        return self.created(aggregate, aggregate.name, describe(aggregate))


class AggregateView(_AggregatesView):
    """One aggregate."""

    @operation("aggregates_read", summary="Read an aggregate", responses=AggregateAnswer)
    def get(self, request: Request, tenant: str, aggregate: str) -> Response:
        row = find(Aggregate.objects.all(), name=aggregate)
        return self.one(describe(row), row.version)

    @operation(
        "aggregates_change",
        summary="Change an aggregate",
        description="Its rows are rebuilt from the retained events, or from the collection's "
        "documents. Until then, queries read the previous rows.",
        request=AggregateChange,
        responses=AggregateAnswer,
    )
    def patch(self, request: Request, tenant: str, aggregate: str) -> Response:
        values = cast("actions.AggregateValues", self.body(AggregateChange, partial=True))
        row = find_for_change(request, Aggregate.objects.all(), name=aggregate)
        actions.do_change(self.principal, row, values)
        return self.one(describe(row), row.version)

    @operation(
        "aggregates_delete", summary="Delete an aggregate with its rows", responses={204: None}
    )
    def delete(self, request: Request, tenant: str, aggregate: str) -> Response:
        row = find_for_change(request, Aggregate.objects.all(), name=aggregate)
        actions.do_delete(self.principal, row)
        return Response(status=204)


class AggregateRebuildView(_AggregatesView):
    """Rebuilds the rows."""

    @operation(
        "aggregates_rebuild",
        summary="Rebuild an aggregate's rows",
        description="From the retained events, or from the collection's documents. Until the new "
        "rows are complete, queries read the previous ones.",
        request=None,
        responses={202: AggregateAnswer},
    )
    def post(self, request: Request, tenant: str, aggregate: str) -> Response:
        row = find_for_change(request, Aggregate.objects.all(), name=aggregate)
        actions.do_rebuild(self.principal, row)
        return self.one(describe(row), row.version, status=202)


_ONE = "tenants/<str:tenant>/aggregates/<str:aggregate>"

urlpatterns = [
    path("tenants/<str:tenant>/aggregates", AggregatesView.as_view()),
    path(f"{_ONE}:rebuild", AggregateRebuildView.as_view()),
    path(_ONE, AggregateView.as_view()),
]
