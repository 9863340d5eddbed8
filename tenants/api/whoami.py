"""`/v1/whoami`: how the data plane sees the caller's credentials."""

from __future__ import annotations

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from tenants.api.base import DataView
from tenants.principals import KINDS


class WhoAmIAnswer(serializers.Serializer[object]):
    """The caller, as access rules and scopes see it."""

    kind = serializers.ChoiceField(KINDS)
    tenant = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    scopes = serializers.ListField(child=serializers.CharField())
    collections = serializers.ListField(child=serializers.CharField(), allow_null=True)
    obeys_access_rules = serializers.BooleanField()
    auth = serializers.DictField(
        allow_null=True, help_text="The end user's claims, as `$auth` in access rules."
    )


class WhoAmIView(DataView):
    """The caller."""

    @extend_schema(
        operation_id="whoami",
        tags=["Data plane"],
        summary="Read the caller's identity",
        responses=WhoAmIAnswer,
    )
    def get(self, request: Request) -> Response:
        who = self.principal
        return Response(
            {
                "kind": who.kind,
                "tenant": who.tenant_slug,
                "label": who.label,
                "scopes": sorted(who.scopes),
                "collections": None if who.collections is None else sorted(who.collections),
                "obeys_access_rules": who.obeys_access_rules,
                "auth": dict(who.claims) or None,
            }
        )


urlpatterns = [path("whoami", WhoAmIView.as_view())]
