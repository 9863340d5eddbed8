"""`/api/v1/tenants/{tenant}/overview`: what a tenant has and what happens in it, at a glance.

It is here because it combines the data of several packages. The console reads it every few seconds
while it is open, so every part of it is bounded, whatever the tenant has stored.
"""

from __future__ import annotations

import datetime

from django.db import models
from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from connections.open_connections import read_usage
from documents.collections import actions as collections
from documents.collections.document_counts import count_documents
from foundation.api.rendering import timestamp
from foundation.json_types import JsonObject
from tenants.api.base import TenantView
from tenants.models import ErrorEntry, UsageMinute

#: Collections whose documents are counted.
MAX_COLLECTIONS = 50
ACTIVITY_SPAN = datetime.timedelta(hours=1)
ERROR_SPAN = datetime.timedelta(hours=24)
#: Error codes that are named.
MAX_CODES = 3


class CollectionCount(serializers.Serializer[object]):
    """The number of documents in a collection."""

    name = serializers.CharField()
    documents = serializers.IntegerField()
    is_estimate = serializers.BooleanField(
        help_text="Whether the number is an estimate, as it is for large collections."
    )


class CollectionCounts(serializers.Serializer[object]):
    """The tenant's collections, by name, at most 50 of them."""

    total = serializers.IntegerField(help_text="Number of all collections.")
    items = CollectionCount(many=True)


class ActivityMinute(serializers.Serializer[object]):
    """Writes and events in one minute."""

    at = serializers.DateTimeField()
    writes = serializers.IntegerField(help_text="Documents inserted, changed or deleted.")
    events = serializers.IntegerField(help_text="Events sent to subscribers.")


class ErrorCodeCount(serializers.Serializer[object]):
    """The occurrences of one kind of error."""

    code = serializers.CharField()
    count = serializers.IntegerField()


class ErrorTotals(serializers.Serializer[object]):
    """The errors of the last 24 hours, as far as the error log holds them."""

    count = serializers.IntegerField()
    codes = ErrorCodeCount(many=True, help_text="The most frequent codes.")


class OverviewAnswer(serializers.Serializer[object]):
    """What a tenant has, and what happens in it."""

    collections = CollectionCounts()
    connections = serializers.IntegerField(
        allow_null=True, help_text="Live connections. Null while they cannot be counted."
    )
    subscriptions = serializers.IntegerField(
        allow_null=True, help_text="Live subscriptions. Null while they cannot be counted."
    )
    activity = ActivityMinute(
        many=True, help_text="The minutes of the last hour in which anything happened."
    )
    errors = ErrorTotals()  # type: ignore[assignment]
    at = serializers.DateTimeField(help_text="When this was read.")


class OverviewView(TenantView):
    """The overview of a tenant."""

    @extend_schema(
        operation_id="overview_read",
        tags=["Overview"],
        summary="Read the overview",
        description="Document counts above 1,000 are estimates. Writes and events appear within "
        "half a minute.",
        responses=OverviewAnswer,
    )
    def get(self, request: Request, tenant: str) -> Response:
        now = timezone.now()
        usage = read_usage(self.tenant.id)
        return Response(
            {
                "collections": _collections(),
                "connections": None if usage is None else usage.connections,
                "subscriptions": None if usage is None else usage.subscriptions,
                "activity": _activity(now),
                "errors": _errors(now),
                "at": timestamp(now),
            }
        )


def _collections() -> JsonObject:
    return {
        "total": collections.active().count(),
        "items": [
            {"name": count.name, "documents": count.documents, "is_estimate": count.is_estimate}
            for count in count_documents(MAX_COLLECTIONS)
        ],
    }


def _activity(now: datetime.datetime) -> list[JsonObject]:
    minutes = UsageMinute.objects.filter(minute__gt=now - ACTIVITY_SPAN).order_by("minute")
    return [
        {"at": timestamp(minute.minute), "writes": minute.writes, "events": minute.events}
        for minute in minutes
    ]


def _errors(now: datetime.datetime) -> JsonObject:
    recent = ErrorEntry.objects.filter(last_at__gt=now - ERROR_SPAN)
    by_code = list(
        recent.values("code").annotate(total=models.Sum("count")).order_by("-total", "code")
    )
    return {
        "count": sum(row["total"] for row in by_code),
        "codes": [{"code": row["code"], "count": row["total"]} for row in by_code[:MAX_CODES]],
    }


urlpatterns = [path("tenants/<str:tenant>/overview", OverviewView.as_view())]
