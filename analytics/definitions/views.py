"""`/api/v1/tenants/{tenant}/datasets`."""

from __future__ import annotations

from functools import partial
from typing import cast

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.definitions import actions
from analytics.definitions.describe import describe
from analytics.definitions.forms import DatasetChange, DatasetCreation, IdKeyField
from analytics.models import Dataset
from tenants.api.base import find, find_for_change, page_of
from tenants.api.declared_view import DeclaredView

TAG = "Datasets"
operation = partial(extend_schema, tags=[TAG])


class ViewAnswer(serializers.Serializer[object]):
    """A secondary view."""

    key = serializers.ListField(child=serializers.CharField())
    columns = serializers.ListField(child=serializers.CharField())


class TableAnswer(serializers.Serializer[object]):
    """A table."""

    columns = serializers.DictField(child=serializers.CharField())
    key = serializers.ListField(child=serializers.CharField())
    views = serializers.DictField(child=ViewAnswer())


class DatasetAnswer(serializers.Serializer[object]):
    """A dataset."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    tables = serializers.DictField(child=TableAnswer())
    id_keys = serializers.DictField(child=IdKeyField())
    retention_s = serializers.IntegerField()
    state = serializers.IntegerField(help_text="The newest state, which is the number of uploads.")
    stored_bytes = serializers.IntegerField(help_text="Size of its files in all stages.")
    version = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


_NEW_DATASET = OpenApiExample(
    "Posts, by time and by author",
    {
        "name": "posts",
        "tables": {
            "posts": {
                "columns": {
                    "id": "int64",
                    "author": "string",
                    "at": "timestamp",
                    "text": "string",
                },
                "key": ["id"],
                "views": {"by_author": {"key": ["author", "id"]}},
            }
        },
    },
    request_only=True,
)


class _DatasetsView(DeclaredView):
    kind = "datasets"


class DatasetsView(_DatasetsView):
    """The datasets of a tenant."""

    @operation("datasets_list", summary="List datasets", responses=page_of(DatasetAnswer))
    def get(self, request: Request, tenant: str) -> Response:
        return self.listed(request, Dataset.objects.all(), describe)

    @operation(
        "datasets_create",
        summary="Create a dataset",
        request=DatasetCreation,
        responses={201: DatasetAnswer},
        examples=[_NEW_DATASET],
    )
    def post(self, request: Request, tenant: str) -> Response:
        values = cast("actions.DatasetValues", self.body(DatasetCreation))
        dataset = actions.do_create(self.principal, self.owner(), values)
        return self.created(dataset, dataset.name, describe(dataset))


class DatasetView(_DatasetsView):
    """One dataset."""

    @operation("datasets_read", summary="Read a dataset", responses=DatasetAnswer)
    def get(self, request: Request, tenant: str, dataset: str) -> Response:
        row = find(Dataset.objects.all(), name=dataset)
        return self.one(describe(row), row.version)

    @operation(
        "datasets_change",
        summary="Change a dataset",
        description="Adds tables, and columns at the end of a table's columns. Nothing else can "
        "be changed.",
        request=DatasetChange,
        responses=DatasetAnswer,
    )
    def patch(self, request: Request, tenant: str, dataset: str) -> Response:
        values = cast("actions.DatasetValues", self.body(DatasetChange, partial=True))
        row = find_for_change(request, Dataset.objects.all(), name=dataset)
        actions.do_change(self.principal, row, values)
        return self.one(describe(row), row.version)

    @operation(
        "datasets_delete", summary="Delete a dataset with all of its uploads", responses={204: None}
    )
    def delete(self, request: Request, tenant: str, dataset: str) -> Response:
        actions.do_delete(
            self.principal, find_for_change(request, Dataset.objects.all(), name=dataset)
        )
        return Response(status=204)


urlpatterns = [
    path("tenants/<str:tenant>/datasets", DatasetsView.as_view()),
    path("tenants/<str:tenant>/datasets/<str:dataset>", DatasetView.as_view()),
]
