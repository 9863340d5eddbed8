"""`/api/v1/tenants/{tenant}/saved-queries`: queries with their charts, which members share."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.urls import path
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.bodies import BodySerializer
from foundation.json_types import JsonObject
from tenants.actions import saved_queries as actions
from tenants.api.base import find_for_change, find_own, page_of
from tenants.api.declared_view import DeclaredView
from tenants.api.forms import LabelField, NameField
from tenants.models import SavedQuery

TAG = "Saved queries"
operation = partial(extend_schema, tags=[TAG])
CHARTS = ["line", "bar", "area", "number", "table"]
MAX_FIELD_CHARS = 200


class SavedChart(BodySerializer):
    """How the rows of a query are drawn. Without a field, the console chooses one."""

    type = serializers.ChoiceField(CHARTS)
    x = serializers.CharField(max_length=MAX_FIELD_CHARS, allow_null=True, required=False)
    y = serializers.CharField(max_length=MAX_FIELD_CHARS, allow_null=True, required=False)
    series = serializers.CharField(
        max_length=MAX_FIELD_CHARS,
        allow_null=True,
        required=False,
        help_text="The field whose values become separate lines or bars.",
    )

    def validate(self, attrs: JsonObject) -> JsonObject:
        """Require the type also in a partial change, which replaces the chart as a whole."""
        if "type" not in attrs:
            raise serializers.ValidationError({"type": "This field is required."}, "required")
        return attrs


class SavedQueryAnswer(serializers.Serializer[object]):
    """A saved query."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(SavedQuery.Kind.choices)
    source = serializers.CharField()  # type: ignore[assignment]
    query = serializers.DictField()
    chart = SavedChart(allow_null=True)
    pin = serializers.IntegerField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class _SavedQueryFields(BodySerializer):
    name = LabelField(help_text="Unique among the tenant's saved queries.")
    source = NameField(  # type: ignore[assignment]
        help_text="The name of the collection, aggregate or dataset."
    )
    query = serializers.DictField(
        help_text="The body of the query call of its kind; for a dataset with `table`, or the body "
        "of its SQL call. At most 16 KiB. It is validated when it is run."
    )
    chart = SavedChart(allow_null=True, required=False, help_text="Null: a table.")
    pin = serializers.IntegerField(
        min_value=0,
        max_value=actions.MAX_PINS - 1,
        allow_null=True,
        required=False,
        help_text="The position on the overview, from 0; the pins from there on move by one. "
        "Null: it is not on the overview. At most 12 queries can be pinned.",
    )


class SavedQueryCreation(_SavedQueryFields):
    """The fields of a new saved query."""

    kind = serializers.ChoiceField(SavedQuery.Kind.choices)


class SavedQueryChange(_SavedQueryFields):
    """The fields of a saved query that can be changed."""


_EXAMPLE = OpenApiExample(
    "Deliveries by state",
    {
        "name": "Deliveries by state",
        "kind": "collection",
        "source": "deliveries",
        "query": {"filter": {}, "group": {"by": ["state"], "measures": {"n": {"op": "count"}}}},
        "chart": {"type": "bar", "x": "state", "y": "n"},
        "pin": 0,
    },
    request_only=True,
)


class _SavedQueriesView(DeclaredView):
    kind = "saved-queries"


class SavedQueriesView(_SavedQueriesView):
    """The saved queries of a tenant."""

    @operation(
        "saved_queries_list",
        summary="List saved queries",
        parameters=[OpenApiParameter("pinned", bool, description="Only those that are pinned.")],
        responses=page_of(SavedQueryAnswer),
    )
    def get(self, request: Request, tenant: str) -> Response:
        rows = SavedQuery.objects.all()
        if request.GET.get("pinned") == "true":
            rows = rows.filter(pin__isnull=False)
        return self.listed(request, rows, actions.describe)

    @operation(
        "saved_queries_create",
        summary="Save a query",
        request=SavedQueryCreation,
        responses={201: SavedQueryAnswer},
        examples=[_EXAMPLE],
    )
    def post(self, request: Request, tenant: str) -> Response:
        saved = actions.do_create(self.principal, self.owner(), self.body(SavedQueryCreation))
        return self.created(saved, str(saved.id), actions.describe(saved))


class SavedQueryView(_SavedQueriesView):
    """One saved query."""

    @operation("saved_queries_read", summary="Read a saved query", responses=SavedQueryAnswer)
    def get(self, request: Request, tenant: str, saved_query: UUID) -> Response:
        row = find_own(SavedQuery, saved_query)
        return self.one(actions.describe(row), row.version)

    @operation(
        "saved_queries_change",
        summary="Change or pin a saved query",
        request=SavedQueryChange,
        responses=SavedQueryAnswer,
    )
    def patch(self, request: Request, tenant: str, saved_query: UUID) -> Response:
        values = self.body(SavedQueryChange, partial=True)
        if "pin" in values:
            actions.lock_pins(self.owner())
        row = find_for_change(request, SavedQuery.objects.all(), pk=saved_query)
        actions.do_change(self.principal, row, values)
        return self.one(actions.describe(row), row.version)

    @operation("saved_queries_delete", summary="Delete a saved query", responses={204: None})
    def delete(self, request: Request, tenant: str, saved_query: UUID) -> Response:
        row = find_for_change(request, SavedQuery.objects.all(), pk=saved_query)
        actions.do_delete(self.principal, row)
        return Response(status=204)


urlpatterns = [
    path("tenants/<str:tenant>/saved-queries", SavedQueriesView.as_view()),
    path("tenants/<str:tenant>/saved-queries/<uuid:saved_query>", SavedQueryView.as_view()),
]
