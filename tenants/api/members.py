"""`/api/v1/tenants/{tenant}/members`."""

from __future__ import annotations

from functools import partial
from typing import ClassVar
from uuid import UUID

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.bodies import BodySerializer
from foundation.api.cursors import page
from tenants.actions import members as actions
from tenants.api.base import TenantView, find, find_for_change, page_of
from tenants.models import Membership
from tenants.roles import Role

TAG = "Members"
operation = partial(extend_schema, tags=[TAG])
ROLES = [role.value for role in Role]


class MemberAnswer(serializers.Serializer[object]):
    """A member of a tenant."""

    user_id = serializers.UUIDField()
    email = serializers.EmailField()
    name = serializers.CharField()
    role = serializers.ChoiceField(ROLES)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class MemberChange(BodySerializer):
    """The fields of a member that can be changed."""

    role = serializers.ChoiceField(ROLES)


class MembersView(TenantView):
    """The members of a tenant."""

    @operation("members_list", summary="List members", responses=page_of(MemberAnswer))
    def get(self, request: Request, tenant: str) -> Response:
        rows = Membership.objects.select_related("user")
        return Response(page(request, rows, actions.describe, name=f"members:{self.tenant.id}"))


class MemberView(TenantView):
    """One member. Every member may leave; admins may remove others."""

    roles: ClassVar = {"GET": Role.VIEWER, "PATCH": Role.ADMIN, "DELETE": Role.VIEWER}

    @operation("members_read", summary="Read a member", responses=MemberAnswer)
    def get(self, request: Request, tenant: str, user: UUID) -> Response:
        row = find(Membership.objects.select_related("user"), user_id=user)
        return self.one(actions.describe(row), row.version)

    @operation(
        "members_change",
        summary="Change a member's role",
        request=MemberChange,
        responses=MemberAnswer,
    )
    def patch(self, request: Request, tenant: str, user: UUID) -> Response:
        role = Role(str(self.body(MemberChange)["role"]))
        row = find_for_change(request, Membership.objects.select_related("user"), user_id=user)
        actions.do_change_role(self.principal, row, role)
        return self.one(actions.describe(row), row.version)

    @operation("members_remove", summary="Remove a member, or leave", responses={204: None})
    def delete(self, request: Request, tenant: str, user: UUID) -> Response:
        row = find_for_change(request, Membership.objects.select_related("user"), user_id=user)
        actions.do_remove(self.principal, row)
        return Response(None, status=204)


urlpatterns = [
    path("tenants/<str:tenant>/members", MembersView.as_view()),
    path("tenants/<str:tenant>/members/<uuid:user>", MemberView.as_view()),
]
