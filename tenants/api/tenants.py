"""`/api/v1/tenants`: the caller's tenants."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from django.db import models
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.bodies import BodySerializer
from foundation.api.cursors import page
from foundation.errors import QuotaExceeded
from tenants.actions import tenants as actions
from tenants.actions.accounts import serialize_calls
from tenants.api.base import TenantView, UserView, find, find_for_change, page_of
from tenants.api.forms import LabelField, OriginField, SlugField
from tenants.credentials.facts import forget_access
from tenants.models import Membership, Tenant
from tenants.roles import Role

TAG = "Tenants"
operation = partial(extend_schema, tags=[TAG])
MAX_OWNED = 25


class TenantAnswer(serializers.Serializer[object]):
    """A tenant."""

    id = serializers.UUIDField()
    slug = serializers.CharField()
    name = serializers.CharField()
    plan = serializers.CharField()
    state = serializers.ChoiceField(Tenant.State.choices)
    cors_origins = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    purge_at = serializers.DateTimeField(allow_null=True)


class TenantCreation(BodySerializer):
    """The fields of a new tenant."""

    slug = SlugField(help_text="The name in URLs. It cannot be changed.")
    name = LabelField(required=False, allow_blank=True, default="", help_text="A display name.")


class TenantChange(BodySerializer):
    """The fields of a tenant that can be changed."""

    name = LabelField()
    cors_origins = serializers.ListField(
        child=OriginField(max_length=200),
        max_length=50,
        help_text="Origins whose pages may call the data plane with a publishable key.",
    )


class TenantsView(UserView):
    """The tenants that the caller is a member of."""

    @operation("tenants_list", summary="List your tenants", responses=page_of(TenantAnswer))
    def get(self, request: Request) -> Response:
        rows = Tenant.objects.filter(memberships__user_id=self.user_id)
        bound = self.principal.bound_tenant_id
        if bound is not None:
            rows = rows.filter(pk=bound)
        return Response(page(request, rows, actions.describe, name=f"tenants:{self.user_id}"))

    @operation(
        "tenants_create",
        summary="Create a tenant",
        description="The caller becomes its owner.",
        request=TenantCreation,
        responses={201: TenantAnswer},
    )
    def post(self, request: Request) -> Response:
        values = self.body(TenantCreation)
        self._check_room()
        tenant = actions.do_create(
            self.principal, self.user_id, str(values["slug"]), str(values["name"])
        )
        location = f"/api/v1/tenants/{tenant.slug}"
        return self.one(actions.describe(tenant), tenant.version, status=201, location=location)

    def _check_room(self) -> None:
        if self.principal.bound_tenant_id is not None:
            raise QuotaExceeded("A token that is bound to one tenant cannot create others.")
        serialize_calls(self.user_id)
        owned = Membership.unscoped.using("auth").filter(user_id=self.user_id, role=Role.OWNER)
        if owned.count() >= MAX_OWNED:
            raise QuotaExceeded(f"A user may own at most {MAX_OWNED} tenants.")


class OneTenantView(TenantView):
    """Base of the views of one tenant, which also serve a tenant that is being deleted."""

    serves_inactive = True

    def _rows(self) -> models.QuerySet[Tenant]:
        return Tenant.objects.filter(pk=self.tenant.id)

    def _forget(self) -> None:
        """Evict the tenant from this process's caches; other processes notice within a second."""
        if self.principal.user_id is not None:
            forget_access(self.principal.user_id, self.tenant.slug)


class TenantDetailView(OneTenantView):
    """One tenant."""

    roles: ClassVar = {"GET": Role.VIEWER, "PATCH": Role.ADMIN, "DELETE": Role.OWNER}

    @operation("tenants_read", summary="Read a tenant", responses=TenantAnswer)
    def get(self, request: Request, tenant: str) -> Response:
        row = find(self._rows())
        return self.one(actions.describe(row), row.version)

    @operation(
        "tenants_change", summary="Change a tenant", request=TenantChange, responses=TenantAnswer
    )
    def patch(self, request: Request, tenant: str) -> Response:
        row = find_for_change(request, self._rows())
        actions.do_change(self.principal, row, self.body(TenantChange, partial=True))
        self._forget()
        return self.one(actions.describe(row), row.version)

    @operation(
        "tenants_delete",
        summary="Delete a tenant",
        description="Its keys stop working immediately; its data is removed after the grace "
        "period.",
        responses={200: TenantAnswer},
    )
    def delete(self, request: Request, tenant: str) -> Response:
        row = find_for_change(request, self._rows())
        actions.do_delete(self.principal, row)
        self._forget()
        return self.one(actions.describe(row), row.version)


class TenantRestoreView(OneTenantView):
    """Restores a tenant during its grace period."""

    roles: ClassVar = {"POST": Role.OWNER}

    @operation(
        "tenants_restore", summary="Restore a deleted tenant", request=None, responses=TenantAnswer
    )
    def post(self, request: Request, tenant: str) -> Response:
        row = find_for_change(request, self._rows())
        actions.do_restore(self.principal, row)
        self._forget()
        return self.one(actions.describe(row), row.version)


urlpatterns = [
    path("tenants", TenantsView.as_view()),
    path("tenants/<str:tenant>:restore", TenantRestoreView.as_view()),
    path("tenants/<str:tenant>", TenantDetailView.as_view()),
]
