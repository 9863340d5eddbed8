"""`/api/v1/tenants/{tenant}/audit-log`: who changed what. Read-only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from django.db.models import Q
from django.urls import path
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.cursors import page
from foundation.api.rendering import timestamp
from foundation.json_types import JsonObject
from tenants.api.base import TenantView, page_of
from tenants.models import AuditEntry
from tenants.roles import Role

TAG = "Audit log"
#: The value of each filter, and how it is compared.
FILTERS = {
    "action": "An action, or the start of one: `api_key` for all changes to API keys.",
    "actor": "Who made the change, as in `actor`, or the start of `actor_label`.",
    "target_type": "The type of what was changed.",
    "target_id": "The id of what was changed.",
}


class AuditEntryAnswer(serializers.Serializer[object]):
    """One change of the control plane."""

    id = serializers.UUIDField()
    at = serializers.DateTimeField()
    action = serializers.CharField()
    actor = serializers.CharField()
    actor_label = serializers.CharField()
    address = serializers.CharField(allow_null=True)
    request_id = serializers.CharField()
    target_type = serializers.CharField()
    target_id = serializers.CharField()
    before = serializers.DictField(allow_null=True)
    after = serializers.DictField(allow_null=True)


def describe(entry: AuditEntry) -> JsonObject:
    """Return an entry as the API shows it."""
    return {
        "id": str(entry.id),
        "at": timestamp(entry.at),
        "action": entry.action,
        "actor": entry.actor,
        "actor_label": entry.actor_label,
        "address": entry.address,
        "request_id": entry.request_id,
        "target_type": entry.target_type,
        "target_id": entry.target_id,
        "before": entry.before,
        "after": entry.after,
    }


class AuditLogView(TenantView):
    """The audit log of a tenant, newest first."""

    roles: ClassVar = {"GET": Role.ADMIN}
    serves_inactive = True

    @extend_schema(
        operation_id="audit_log_list",
        tags=[TAG],
        summary="Read the audit log",
        parameters=[
            OpenApiParameter(name, str, description=text) for name, text in FILTERS.items()
        ],
        responses=page_of(AuditEntryAnswer),
    )
    def get(self, request: Request, tenant: str) -> Response:
        rows = AuditEntry.objects.filter(_matching(request.GET))
        return Response(page(request, rows, describe, name=f"audit:{self.tenant.id}"))


def _matching(filters: Mapping[str, str]) -> Q:
    """Return what entries have to match."""
    matching = Q()
    for name in FILTERS.keys() & filters.keys():
        value = filters[name]
        match name:
            case "action":
                matching &= Q(action__startswith=value)
            case "actor":
                matching &= Q(actor=value) | Q(actor_label__istartswith=value)
            case _:
                matching &= Q(**{name: value})
    return matching


urlpatterns = [path("tenants/<str:tenant>/audit-log", AuditLogView.as_view())]
