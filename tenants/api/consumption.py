"""`/api/v1/tenants/{tenant}/quota` and `/usage`: a tenant's limits and its usage."""

from __future__ import annotations

import datetime
from functools import partial
from typing import ClassVar

from django.db import models
from django.db.models.functions import TruncDay, TruncHour
from django.http import HttpRequest
from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.rendering import timestamp
from foundation.json_types import JsonObject
from tenants.actions import api_keys
from tenants.api.base import TenantView
from tenants.api.parameters import invalid, moment
from tenants.models import Issuer, Membership, SavedQuery, Tenant, UsageHour, Webhook
from tenants.quotas import counts, effective_limits
from tenants.roles import Role

TAG = "Quota and usage"
operation = partial(extend_schema, tags=[TAG])
MAX_SPAN = datetime.timedelta(days=92)
DEFAULT_SPAN = datetime.timedelta(days=7)


class QuotaAnswer(serializers.Serializer[object]):
    """The limits of a tenant, and its current usage of those that are counted."""

    plan = serializers.CharField()
    limits = serializers.DictField(child=serializers.IntegerField())
    used = serializers.DictField(child=serializers.IntegerField())


class UsagePoint(serializers.Serializer[object]):
    """The total of one metric in one period."""

    at = serializers.DateTimeField()
    metric = serializers.CharField()
    amount = serializers.IntegerField()


class UsageAnswer(serializers.Serializer[object]):
    """The usage of a tenant, by period."""

    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    granularity = serializers.ChoiceField(["hour", "day"])
    items = UsagePoint(many=True)


class QuotaView(TenantView):
    """The limits of a tenant. Only staff can change them."""

    @operation("quota_read", summary="Read the quota", responses=QuotaAnswer)
    def get(self, request: Request, tenant: str) -> Response:
        row = Tenant.objects.select_related("plan", "quota").get(pk=self.tenant.id)
        used = {
            "members": Membership.objects.count(),
            "api_keys": api_keys.counted().count(),
            "webhooks": Webhook.objects.count(),
            "issuers": Issuer.objects.count(),
            "saved_queries": SavedQuery.objects.count(),
            **{limit: count() for limit, count in counts.items()},
        }
        return Response({"plan": row.plan_id, "limits": effective_limits(row), "used": used})


class UsageView(TenantView):
    """The usage of a tenant."""

    roles: ClassVar = {"GET": Role.VIEWER}

    @operation(
        "usage_read",
        summary="Read the usage",
        description="Totals by hour or by day (UTC). The last few minutes may be missing.",
        parameters=[
            OpenApiParameter("since", datetime.datetime, description="Default: 7 days ago."),
            OpenApiParameter("until", datetime.datetime, description="Default: now."),
            OpenApiParameter("granularity", str, enum=["hour", "day"], default="hour"),
        ],
        responses=UsageAnswer,
    )
    def get(self, request: Request, tenant: str) -> Response:
        since, until = _span(request)
        granularity = request.GET.get("granularity", "hour")
        if granularity not in ("hour", "day"):
            raise invalid("granularity", "One of hour, day.")
        period = TruncHour("hour") if granularity == "hour" else TruncDay("hour")
        rows = (
            UsageHour.objects.filter(hour__gte=since, hour__lt=until)
            .annotate(at=period)
            .values("at", "metric")
            .annotate(total=models.Sum("amount"))
            .order_by("at", "metric")
        )
        items: list[JsonObject] = [
            {"at": timestamp(r["at"]), "metric": r["metric"], "amount": r["total"]} for r in rows
        ]
        return Response(
            {
                "since": timestamp(since),
                "until": timestamp(until),
                "granularity": granularity,
                "items": items,
            }
        )


def _span(request: HttpRequest) -> tuple[datetime.datetime, datetime.datetime]:
    until = moment(request, "until") or timezone.now()
    since = moment(request, "since") or until - DEFAULT_SPAN
    if not since < until <= since + MAX_SPAN:
        raise invalid("since", f"`since` must be before `until`, by at most {MAX_SPAN.days} days.")
    return since, until


urlpatterns = [
    path("tenants/<str:tenant>/quota", QuotaView.as_view()),
    path("tenants/<str:tenant>/usage", UsageView.as_view()),
]
