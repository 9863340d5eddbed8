"""`/api/v1/tenants/{tenant}/errors`: recent errors. Read-only."""

from __future__ import annotations

from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.cursors import page
from foundation.api.rendering import timestamp
from foundation.errors import FieldProblem, InvalidParameter
from foundation.json_types import JsonObject
from tenants.api.base import TenantView, page_of
from tenants.models import ErrorEntry

TAG = "Error log"
FILTERS = ("area", "code", "actor", "request_id")


class ErrorEntryAnswer(serializers.Serializer[object]):
    """Errors of one kind within one minute."""

    id = serializers.UUIDField()
    area = serializers.ChoiceField(ErrorEntry.Area.values)
    code = serializers.CharField(help_text="The id from the list of errors.")
    status = serializers.IntegerField(allow_null=True)
    place = serializers.CharField(help_text="The call, or the name of the task that failed.")
    detail = serializers.CharField(help_text="The message of the last occurrence.")
    actor = serializers.CharField()
    request_id = serializers.CharField(help_text="The request id of the last occurrence.")
    count = serializers.IntegerField()
    at = serializers.DateTimeField()
    last_at = serializers.DateTimeField()


def describe(entry: ErrorEntry) -> JsonObject:
    """Return an entry as the API shows it."""
    return {
        "id": str(entry.id),
        "area": entry.area,
        "code": entry.code,
        "status": entry.status,
        "place": entry.place,
        "detail": entry.detail,
        "actor": entry.actor,
        "request_id": entry.request_id,
        "count": entry.count,
        "at": timestamp(entry.at),
        "last_at": timestamp(entry.last_at),
    }


class ErrorLogView(TenantView):
    """The error log of a tenant, newest first."""

    serves_inactive = True

    @extend_schema(
        operation_id="errors_list",
        tags=[TAG],
        summary="Read the error log",
        parameters=[
            OpenApiParameter("area", str, enum=ErrorEntry.Area.values),
            *(OpenApiParameter(name, str) for name in FILTERS[1:]),
        ],
        responses=page_of(ErrorEntryAnswer),
    )
    def get(self, request: Request, tenant: str) -> Response:
        filters = {name: request.GET[name] for name in FILTERS if name in request.GET}
        if filters.get("area", ErrorEntry.Area.REQUEST) not in ErrorEntry.Area.values:
            areas = ", ".join(ErrorEntry.Area.values)
            raise InvalidParameter(errors=[FieldProblem("area", "invalid", f"One of {areas}.")])
        rows = ErrorEntry.objects.filter(**filters)
        return Response(page(request, rows, describe, name=f"errors:{self.tenant.id}"))


urlpatterns = [path("tenants/<str:tenant>/errors", ErrorLogView.as_view())]
