"""`/api/v1/tenants/{tenant}/subscriptions`: the current subscriptions."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from realtime.subscriptions import subscription_list
from tenants.api.base import TenantView
from tenants.audit import AuditTarget, record
from tenants.roles import Role

TAG = "Subscriptions"
operation = partial(extend_schema, tags=[TAG])


class SubscriptionAnswer(serializers.Serializer[object]):
    """One subscription of a client."""

    id = serializers.CharField()
    connection = serializers.CharField()
    name = serializers.CharField(help_text="The id chosen by the client.")
    user = serializers.CharField(help_text="The end user's `sub`, a member, or the key's name.")
    principal = serializers.CharField()
    collection = serializers.CharField(required=False, help_text="The collection that is queried.")
    topic = serializers.CharField(required=False, help_text="The topic that is subscribed to.")
    aggregate = serializers.CharField(
        required=False, help_text="The aggregate whose rows are subscribed to."
    )
    query = serializers.DictField(help_text="The query, including the access rule.")
    query_hash = serializers.CharField(help_text="Subscriptions with the same hash share a query.")
    state = serializers.ChoiceField(["starting", "live", "stale"])
    age_s = serializers.FloatField()
    events = serializers.IntegerField(
        help_text="Number of events sent since the subscription started."
    )
    events_per_s = serializers.FloatField()
    lag_ms = serializers.FloatField(
        allow_null=True, help_text="How far the client lags behind the writes."
    )
    waiting = serializers.IntegerField(
        help_text="Number of events that the client has not received yet."
    )
    waiting_bytes = serializers.IntegerField(help_text="Memory that these events take.")
    result_bytes = serializers.IntegerField(
        help_text="Memory of the result, shared by all subscribers of the query on this server."
    )


class SubscriptionsAnswer(serializers.Serializer[object]):
    """All subscriptions of the tenant, at most 1,000 of each server process."""

    items = SubscriptionAnswer(many=True)


class SubscriptionsView(TenantView):
    """The tenant's subscriptions, over all processes."""

    @operation(
        "subscriptions_list", summary="List live subscriptions", responses=SubscriptionsAnswer
    )
    def get(self, request: Request, tenant: str) -> Response:
        return Response({"items": subscription_list.listed(self.tenant.id)})


class SubscriptionView(TenantView):
    """One subscription."""

    roles: ClassVar = {"DELETE": Role.DEVELOPER}

    @operation("subscriptions_end", summary="End a live subscription", responses={204: None})
    def delete(self, request: Request, tenant: str, subscription: str) -> Response:
        subscription_list.end(self.tenant.id, subscription)
        record(self.principal, "subscription.ended", AuditTarget("subscription", subscription))
        return Response(status=204)


urlpatterns = [
    path("tenants/<str:tenant>/subscriptions", SubscriptionsView.as_view()),
    path("tenants/<str:tenant>/subscriptions/<str:subscription>", SubscriptionView.as_view()),
]
