"""`/api/v1/tenants/{tenant}/issuers`: whose tokens (JWT) identify the tenant's end users."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, cast
from uuid import UUID

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.bodies import BodySerializer
from foundation.api.cursors import page
from tenants.actions import issuers as actions
from tenants.api.base import TenantView, find_for_change, find_own, page_of
from tenants.api.forms import NameField
from tenants.credentials.jwt import ASYMMETRIC, SYMMETRIC
from tenants.models import Issuer, Tenant
from tenants.roles import Role

TAG = "Token issuers"
operation = partial(extend_schema, tags=[TAG])
ALGORITHMS = (*ASYMMETRIC, *SYMMETRIC)
MAX_LEEWAY_S = 300
#: A minute, and a year.
MIN_TOKEN_AGE_S, MAX_TOKEN_AGE_S = 60, 31_536_000


class IssuerAnswer(serializers.Serializer[object]):
    """A registered issuer."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    issuer = serializers.CharField()
    audience = serializers.CharField()
    algorithms = serializers.ListField(child=serializers.ChoiceField(ALGORITHMS))
    jwks_url = serializers.CharField(allow_null=True)
    has_secret = serializers.BooleanField()
    leeway_s = serializers.IntegerField()
    max_token_age_s = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class IssuerCreation(BodySerializer):
    """The fields of a new issuer, with either `jwks_url` or `secret`."""

    name = NameField()
    issuer = serializers.CharField(
        max_length=300, help_text="The `iss` claim that tokens must have."
    )
    audience = serializers.CharField(
        max_length=300, help_text="The `aud` claim that tokens must have."
    )
    algorithms = serializers.ListField(
        child=serializers.ChoiceField(ALGORITHMS), min_length=1, max_length=len(ALGORITHMS)
    )
    jwks_url = serializers.CharField(
        max_length=500,
        default="",
        allow_blank=True,
        help_text="URL of the issuer's key set (JWKS).",
    )
    secret = serializers.CharField(
        max_length=1000,
        default="",
        allow_blank=True,
        trim_whitespace=False,
        write_only=True,
        help_text="Secret shared with the issuer, for HS256 and similar algorithms.",
    )
    leeway_s = serializers.IntegerField(
        min_value=0,
        max_value=MAX_LEEWAY_S,
        default=30,
        help_text="Clock skew that is tolerated between the issuer and Rillbase.",
    )
    max_token_age_s = serializers.IntegerField(
        min_value=MIN_TOKEN_AGE_S,
        max_value=MAX_TOKEN_AGE_S,
        default=86_400,
        help_text="Tokens are rejected this long after they were issued (`iat`), and connections "
        "end then, whatever their expiry. A token without `iat` may expire that much later than "
        "now at most.",
    )


_EXAMPLE = OpenApiExample(
    "An identity provider",
    {
        "name": "login",
        "issuer": "https://login.example.com/",
        "audience": "todo-app",
        "algorithms": ["RS256"],
        "jwks_url": "https://login.example.com/.well-known/jwks.json",
    },
    request_only=True,
)


class IssuersView(TenantView):
    """The issuers that a tenant trusts."""

    roles: ClassVar = {"GET": Role.VIEWER, "POST": Role.ADMIN}

    @operation("issuers_list", summary="List token issuers", responses=page_of(IssuerAnswer))
    def get(self, request: Request, tenant: str) -> Response:
        rows = Issuer.objects.all()
        return Response(page(request, rows, actions.describe, name=f"issuers:{self.tenant.id}"))

    @operation(
        "issuers_create",
        summary="Register a token issuer",
        request=IssuerCreation,
        responses={201: IssuerAnswer},
        examples=[_EXAMPLE],
    )
    def post(self, request: Request, tenant: str) -> Response:
        values = cast("actions.IssuerValues", self.body(IssuerCreation))
        actions.check_keys(values["algorithms"], values["jwks_url"], values["secret"])
        owner = Tenant.objects.select_related("plan", "quota").get(pk=self.tenant.id)
        row = actions.do_create(self.principal, owner, values)
        location = self.url("issuers", str(row.id))
        return self.one(actions.describe(row), row.version, status=201, location=location)


class IssuerView(TenantView):
    """One issuer. A registration cannot be changed, only replaced."""

    roles: ClassVar = {"GET": Role.VIEWER, "DELETE": Role.ADMIN}

    @operation("issuers_read", summary="Read a token issuer", responses=IssuerAnswer)
    def get(self, request: Request, tenant: str, issuer: UUID) -> Response:
        row = find_own(Issuer, issuer)
        return self.one(actions.describe(row), row.version)

    @operation(
        "issuers_delete",
        summary="Delete a token issuer",
        description="Within a second, every server rejects its tokens, and ends the connections "
        "and subscriptions that they opened.",
        responses={204: None},
    )
    def delete(self, request: Request, tenant: str, issuer: UUID) -> Response:
        row = find_for_change(request, Issuer.objects.all(), pk=issuer)
        actions.do_delete(self.principal, row)
        return Response(None, status=204)


urlpatterns = [
    path("tenants/<str:tenant>/issuers", IssuersView.as_view()),
    path("tenants/<str:tenant>/issuers/<uuid:issuer>", IssuerView.as_view()),
]
