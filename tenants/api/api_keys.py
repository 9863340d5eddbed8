"""`/api/v1/tenants/{tenant}/api-keys`."""

from __future__ import annotations

import datetime
from functools import partial
from typing import ClassVar, cast
from uuid import UUID

from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.bodies import BodySerializer
from foundation.api.cursors import page
from foundation.errors import FieldProblem, InvalidBody
from tenants.actions import api_keys as actions
from tenants.api.base import TenantView, find_for_change, find_own, page_of
from tenants.api.forms import LabelField, NameField, NetworkField
from tenants.models import ApiKey, Tenant
from tenants.roles import ALL_SCOPES, END_USER_SCOPES, RETIRED_SCOPES, Role

TAG = "API keys"
operation = partial(extend_schema, tags=[TAG])
MAX_OVERLAP_S = 30 * 24 * 3600
DEFAULT_OVERLAP_S = 24 * 3600
_SCOPES = (*ALL_SCOPES, *RETIRED_SCOPES)
_SCOPES_HELP = "Permissions of the key. `realtime` is deprecated and has no effect."


class ApiKeyAnswer(serializers.Serializer[object]):
    """An API key."""

    id = serializers.UUIDField()
    kind = serializers.ChoiceField(ApiKey.Kind.choices)
    name = serializers.CharField()
    key_id = serializers.CharField(help_text="The public part of the key, as shown in logs.")
    key = serializers.CharField(
        allow_null=True, help_text="A publishable key in full; null for secret keys."
    )
    scopes = serializers.ListField(child=serializers.ChoiceField(_SCOPES))
    collections = serializers.ListField(child=serializers.CharField())
    allowed_networks = serializers.ListField(child=serializers.CharField())
    state = serializers.ChoiceField(actions.STATES)
    expires_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)
    revoked_at = serializers.DateTimeField(allow_null=True)
    successor_id = serializers.UUIDField(allow_null=True)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class NewApiKeyAnswer(ApiKeyAnswer):
    """A new API key with its secret, which is shown only once."""

    secret = serializers.CharField(
        allow_null=True, help_text="The whole key. Null when an idempotent call is repeated."
    )


class _KeyFields(BodySerializer):
    name = LabelField(help_text="A display name.")
    scopes = serializers.ListField(
        child=serializers.ChoiceField(_SCOPES),
        min_length=1,
        max_length=len(_SCOPES),
        help_text=_SCOPES_HELP,
    )
    collections = serializers.ListField(
        child=NameField(),
        max_length=100,
        default=list,
        help_text="Collections that the key may be used for. Empty: all.",
    )
    allowed_networks = serializers.ListField(
        child=NetworkField(max_length=50),
        max_length=100,
        default=list,
        help_text="Networks (CIDR) from which the key may be used. Empty: all.",
    )
    expires_at = serializers.DateTimeField(allow_null=True, default=None)

    def validate_expires_at(self, moment: datetime.datetime | None) -> datetime.datetime | None:
        if moment is not None and moment <= timezone.now():
            raise serializers.ValidationError("The time is in the past.", "in_the_past")
        return moment


class ApiKeyCreation(_KeyFields):
    """The fields of a new key."""

    kind = serializers.ChoiceField(ApiKey.Kind.choices, default=ApiKey.Kind.SECRET)


class ApiKeyChange(_KeyFields):
    """The fields of a key that can be changed."""


class ApiKeyRotation(BodySerializer):
    """Options of a rotation."""

    overlap_s = serializers.IntegerField(
        min_value=0,
        max_value=MAX_OVERLAP_S,
        default=DEFAULT_OVERLAP_S,
        help_text="How long the old key remains valid beside its successor.",
    )


_NEW_KEY = OpenApiExample(
    "A key for a server",
    {"name": "Back end", "scopes": ["documents:read", "documents:write"]},
    request_only=True,
)


class ApiKeysView(TenantView):
    """The API keys of a tenant."""

    roles: ClassVar = {"GET": Role.DEVELOPER, "POST": Role.DEVELOPER}
    secret_fields = ("secret",)

    @operation("api_keys_list", summary="List API keys", responses=page_of(ApiKeyAnswer))
    def get(self, request: Request, tenant: str) -> Response:
        rows = ApiKey.objects.all()
        return Response(page(request, rows, actions.describe, name=f"api_keys:{self.tenant.id}"))

    @operation(
        "api_keys_create",
        summary="Create an API key",
        description="`secret` contains the whole key and is shown only once.",
        request=ApiKeyCreation,
        responses={201: NewApiKeyAnswer},
        examples=[_NEW_KEY],
    )
    def post(self, request: Request, tenant: str) -> Response:
        values = cast("actions.KeyValues", self.body(ApiKeyCreation))
        _check_publishable(values["kind"], values["scopes"])
        owner = Tenant.objects.select_related("plan", "quota").get(pk=self.tenant.id)
        key, secret = actions.do_create(self.principal, owner, values)
        return self.one(
            {**actions.describe(key), "secret": secret},
            key.version,
            status=201,
            location=self.url("api-keys", str(key.id)),
        )


class ApiKeyView(TenantView):
    """One API key."""

    roles: ClassVar = {
        "GET": Role.DEVELOPER,
        "PATCH": Role.DEVELOPER,
        "DELETE": Role.DEVELOPER,
    }

    @operation("api_keys_read", summary="Read an API key", responses=ApiKeyAnswer)
    def get(self, request: Request, tenant: str, key: UUID) -> Response:
        row = find_own(ApiKey, key)
        return self.one(actions.describe(row), row.version)

    @operation(
        "api_keys_change", summary="Change an API key", request=ApiKeyChange, responses=ApiKeyAnswer
    )
    def patch(self, request: Request, tenant: str, key: UUID) -> Response:
        changes = cast("actions.KeyValues", self.body(ApiKeyChange, partial=True))
        row = find_for_change(request, ApiKey.objects.all(), pk=key)
        if "scopes" in changes:
            _check_publishable(row.kind, changes["scopes"])
        actions.check_scopes(self.principal, [*row.scopes, *changes.get("scopes", [])])
        actions.do_change(self.principal, row, changes)
        return self.one(actions.describe(row), row.version)

    @operation(
        "api_keys_revoke",
        summary="Revoke an API key",
        description="Every server rejects the key within a second.",
        responses={200: ApiKeyAnswer},
    )
    def delete(self, request: Request, tenant: str, key: UUID) -> Response:
        row = find_for_change(request, ApiKey.objects.all(), pk=key)
        actions.check_scopes(self.principal, row.scopes)
        actions.do_revoke(self.principal, row)
        return self.one(actions.describe(row), row.version)


class ApiKeyRotateView(TenantView):
    """The rotation of a key."""

    roles: ClassVar = {"POST": Role.DEVELOPER}
    secret_fields = ("secret",)

    @operation(
        "api_keys_rotate",
        summary="Rotate an API key",
        description="Creates a successor with the same permissions; both keys are valid until the "
        "overlap ends.",
        request=ApiKeyRotation,
        responses={201: NewApiKeyAnswer},
    )
    def post(self, request: Request, tenant: str, key: UUID) -> Response:
        overlap = datetime.timedelta(seconds=float(str(self.body(ApiKeyRotation)["overlap_s"])))
        row = find_for_change(request, ApiKey.objects.all(), pk=key)
        actions.check_scopes(self.principal, row.scopes)
        owner = Tenant.objects.select_related("plan", "quota").get(pk=self.tenant.id)
        successor, secret = actions.do_rotate(self.principal, owner, row, overlap)
        return self.one(
            {**actions.describe(successor), "secret": secret},
            successor.version,
            status=201,
            location=self.url("api-keys", str(successor.id)),
        )


def _check_publishable(kind: str, scopes: list[str]) -> None:
    """Reject scopes that a publishable key must not have."""
    if kind != ApiKey.Kind.PUBLISHABLE:
        return
    if not set(scopes) <= END_USER_SCOPES.union(RETIRED_SCOPES):
        allowed = ", ".join(sorted(END_USER_SCOPES))
        problem = FieldProblem(
            "/scopes",
            "not_publishable",
            f"A publishable key may have only these scopes: {allowed}.",
        )
        raise InvalidBody(errors=[problem])


urlpatterns = [
    path("tenants/<str:tenant>/api-keys", ApiKeysView.as_view()),
    path("tenants/<str:tenant>/api-keys/<uuid:key>", ApiKeyView.as_view()),
    path("tenants/<str:tenant>/api-keys/<uuid:key>/rotate", ApiKeyRotateView.as_view()),
]
