"""`/api/v1/me/tokens` and `/api/v1/tenants/{tenant}/tokens`: credentials for users' scripts."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from functools import partial
from typing import ClassVar
from uuid import UUID

from django.db import models
from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.bodies import BodySerializer
from foundation.api.cursors import page
from foundation.json_types import JsonObject
from tenants.actions import tokens as actions
from tenants.api.base import (
    ConsoleView,
    TenantView,
    find,
    find_for_change,
    page_of,
    require_session,
)
from tenants.api.forms import LabelField
from tenants.models import PersonalToken
from tenants.roles import Role

TAG = "Personal tokens"
operation = partial(extend_schema, tags=[TAG])
DEFAULT_EXPIRY = datetime.timedelta(days=90)
MAX_EXPIRY_DAYS = 3650


class TokenAnswer(serializers.Serializer[object]):
    """A personal token."""

    id = serializers.UUIDField()
    name = serializers.CharField()
    key_id = serializers.CharField(help_text="The public part of the token, as shown in logs.")
    tenant_id = serializers.UUIDField(
        allow_null=True,
        help_text="The only tenant in which it is valid; null: all of the user's tenants.",
    )
    tenant = serializers.CharField(allow_null=True, help_text="That tenant's slug.")
    state = serializers.ChoiceField(["active", "expired", "revoked"])
    expires_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class TenantTokenAnswer(TokenAnswer):
    """A personal token and its owner."""

    user_id = serializers.UUIDField()
    user_email = serializers.EmailField()


class NewTokenAnswer(TokenAnswer):
    """A new personal token with its secret, which is shown only once."""

    secret = serializers.CharField(
        allow_null=True, help_text="The whole token. Null when an idempotent call is repeated."
    )


class TokenCreation(BodySerializer):
    """The fields of a new token."""

    name = LabelField(help_text="What the token is used for.")
    expires_in_days = serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_EXPIRY_DAYS
    )
    expires_at = serializers.DateTimeField(
        required=False,
        allow_null=True,
        help_text="Null: never. If both this and `expires_in_days` are omitted: in 90 days.",
    )

    def validate_expires_at(self, moment: datetime.datetime | None) -> datetime.datetime | None:
        if moment is not None and moment <= timezone.now():
            raise serializers.ValidationError("The time is in the past.", "in_the_past")
        return moment

    def validate(self, attrs: JsonObject) -> JsonObject:
        if "expires_at" in attrs and "expires_in_days" in attrs:
            raise serializers.ValidationError(
                {
                    "expires_in_days": serializers.ErrorDetail(
                        "Specify only one of the two.", "ambiguous"
                    )
                }
            )
        return attrs


def _expiry(values: Mapping[str, object]) -> datetime.datetime | None:
    if "expires_at" in values:
        moment = values["expires_at"]
        return moment if isinstance(moment, datetime.datetime) else None
    days = values.get("expires_in_days")
    return timezone.now() + (
        datetime.timedelta(days=days) if isinstance(days, int) else DEFAULT_EXPIRY
    )


_NEW_TOKEN = OpenApiExample(
    "For a month", {"name": "Laptop", "expires_in_days": 30}, request_only=True
)
_SESSION_ONLY = (
    "Only with a console session: a token that could create tokens would outlive its revocation."
)


class MyTokensView(ConsoleView):
    """The user's tokens."""

    secret_fields = ("secret",)

    @operation(
        "me_tokens_list",
        summary="List your tokens",
        description="Includes tokens that are bound to one tenant.",
        responses=page_of(TokenAnswer),
    )
    def get(self, request: Request) -> Response:
        rows = actions.of_user(self.user_id)
        return Response(page(request, rows, actions.describe, name=f"tokens:{self.user_id}"))

    @operation(
        "me_tokens_create",
        summary="Create a token for all of your tenants",
        description=f"`secret` contains the whole token and is shown only once. {_SESSION_ONLY}",
        request=TokenCreation,
        responses={201: NewTokenAnswer},
        examples=[_NEW_TOKEN],
    )
    def post(self, request: Request) -> Response:
        values = self.body(TokenCreation)
        token, secret = actions.do_create(
            self.principal, self.user_id, str(values["name"]), _expiry(values)
        )
        body = {**actions.describe(token), "secret": secret}
        return self.one(body, token.version, status=201, location=f"/api/v1/me/tokens/{token.id}")


class MyTokenView(ConsoleView):
    """One of the user's tokens."""

    @operation("me_tokens_read", summary="Read one of your tokens", responses=TokenAnswer)
    def get(self, request: Request, token: UUID) -> Response:
        row = find(actions.of_user(self.user_id), pk=token)
        return self.one(actions.describe(row), row.version)

    @operation(
        "me_tokens_revoke",
        summary="Revoke one of your tokens",
        description="Every server rejects it within a second.",
        responses=TokenAnswer,
    )
    def delete(self, request: Request, token: UUID) -> Response:
        row = find_for_change(request, actions.of_user(self.user_id), pk=token)
        actions.do_revoke(self.principal, row)
        return self.one(actions.describe(row), row.version)


class BoundTokenBase(TenantView):
    """The tokens that are bound to a tenant: members see their own, admins all."""

    roles: ClassVar = {"GET": Role.VIEWER, "POST": Role.VIEWER, "DELETE": Role.VIEWER}

    def rows(self) -> models.QuerySet[PersonalToken]:
        rows = actions.of_tenant(self.tenant.id).select_related("tenant", "user")
        role = self.principal.control_role
        if role is not None and role.at_least(Role.ADMIN):
            return rows
        # A caller that is not an admin is a user: keys have access to the control plane only as
        # admins.
        own = self.principal.user_id
        return rows.filter(user_id=own) if own is not None else rows.none()


class BoundTokensView(BoundTokenBase):
    """The tokens of a tenant."""

    secret_fields = ("secret",)

    @operation(
        "tenant_tokens_list",
        summary="List a tenant's tokens",
        description="Your own; as an admin, those of all members.",
        responses=page_of(TenantTokenAnswer),
    )
    def get(self, request: Request, tenant: str) -> Response:
        return Response(
            page(
                request,
                self.rows(),
                actions.describe_with_user,
                name=f"tokens:{self.tenant.id}:{self.principal.actor}",
            )
        )

    @operation(
        "tenant_tokens_create",
        summary="Create a token for one tenant",
        description=f"`secret` contains the whole token and is shown only once. {_SESSION_ONLY}",
        request=TokenCreation,
        responses={201: NewTokenAnswer},
        examples=[_NEW_TOKEN],
    )
    def post(self, request: Request, tenant: str) -> Response:
        user_id = require_session(self.principal)
        values = self.body(TokenCreation)
        token, secret = actions.do_create(
            self.principal,
            user_id,
            str(values["name"]),
            _expiry(values),
            tenant_id=self.tenant.id,
        )
        return self.one(
            {**actions.describe(token), "secret": secret},
            token.version,
            status=201,
            location=self.url("tokens", str(token.id)),
        )


class BoundTokenView(BoundTokenBase):
    """One token of a tenant."""

    @operation("tenant_tokens_read", summary="Read a tenant's token", responses=TenantTokenAnswer)
    def get(self, request: Request, tenant: str, token: UUID) -> Response:
        row = find(self.rows(), pk=token)
        return self.one(actions.describe_with_user(row), row.version)

    @operation(
        "tenant_tokens_revoke",
        summary="Revoke a tenant's token",
        description="Your own; as an admin, those of all members. Every server rejects it within "
        "a second.",
        responses=TenantTokenAnswer,
    )
    def delete(self, request: Request, tenant: str, token: UUID) -> Response:
        row = find_for_change(request, self.rows(), pk=token)
        actions.do_revoke(self.principal, row)
        return self.one(actions.describe_with_user(row), row.version)


urlpatterns = [
    path("me/tokens", MyTokensView.as_view()),
    path("me/tokens/<uuid:token>", MyTokenView.as_view()),
    path("tenants/<str:tenant>/tokens", BoundTokensView.as_view()),
    path("tenants/<str:tenant>/tokens/<uuid:token>", BoundTokenView.as_view()),
]
