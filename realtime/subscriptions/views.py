"""`/api/v1/tenants/{tenant}/subscriptions`: who watches what, now."""

from __future__ import annotations

from typing import ClassVar

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from realtime.subscriptions import subscription_list
from tenants.api.base import TenantView
from tenants.audit import Target, record
from tenants.roles import Role

TAG = "Subscriptions"


class SubscriptionAnswer(serializers.Serializer[object]):
    """One client's interest in one query."""

    id = serializers.CharField()
    connection = serializers.CharField()
    name = serializers.CharField(help_text="The id that the client chose.")
    user = serializers.CharField(help_text="The end user's `sub`, a member, or the key's name.")
    principal = serializers.CharField()
    collection = serializers.CharField(required=False, help_text="What is queried.")
    topic = serializers.CharField(required=False, help_text="What is subscribed to.")
    aggregate = serializers.CharField(required=False, help_text="Whose rows are watched.")
    query = serializers.DictField(help_text="The query, the access rule included.")
    query_hash = serializers.CharField(help_text="Subscriptions with the same one share a query.")
    state = serializers.ChoiceField(["starting", "live", "stale"])
    age_s = serializers.FloatField()
    events = serializers.IntegerField(help_text="Events sent since it began.")
    events_per_s = serializers.FloatField()
    lag_ms = serializers.FloatField(
        allow_null=True, help_text="How far behind the writes the client is."
    )
    waiting = serializers.IntegerField(help_text="Events that the client has not taken yet.")
    waiting_bytes = serializers.IntegerField(help_text="The memory that these take.")
    result_bytes = serializers.IntegerField(
        help_text="The memory of the result, which all who watch the query at the server share."
    )


class SubscriptionsAnswer(serializers.Serializer[object]):
    """All subscriptions of the tenant, at most 1,000 of each server process."""

    items = SubscriptionAnswer(many=True)


class SubscriptionsView(TenantView):
    """The tenant's subscriptions, over all processes."""

    @extend_schema(
        operation_id="subscriptions_list",
        tags=[TAG],
        summary="List live subscriptions",
        responses=SubscriptionsAnswer,
    )
    def get(self, request: Request, tenant: str) -> Response:
        return Response({"items": subscription_list.listed(self.tenant.id)})


class SubscriptionView(TenantView):
    """One subscription."""

    roles: ClassVar = {"DELETE": Role.DEVELOPER}

    @extend_schema(
        operation_id="subscriptions_end",
        tags=[TAG],
        summary="End a live subscription",
        responses={204: None},
    )
    def delete(self, request: Request, tenant: str, subscription: str) -> Response:
        subscription_list.end(self.tenant.id, subscription)
        record(self.principal, "subscription.ended", Target("subscription", subscription))
        return Response(status=204)


urlpatterns = [
    path("tenants/<str:tenant>/subscriptions", SubscriptionsView.as_view()),
    path("tenants/<str:tenant>/subscriptions/<str:subscription>", SubscriptionView.as_view()),
]
