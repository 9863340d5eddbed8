"""`/api/v1/tenants/{tenant}/invitations`, and the calls by which invitees join."""

from __future__ import annotations

from functools import partial
from typing import ClassVar
from uuid import UUID

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.bodies import BodySerializer
from foundation.api.cursors import page
from foundation.scope import scoped
from tenants.actions import invitations as actions
from tenants.actions import tenants as tenant_actions
from tenants.api.account_forms import AddressField, invitation_limits, link_limits
from tenants.api.base import ConsoleView, SignInView, TenantView, find, find_for_change, page_of
from tenants.api.members import ROLES
from tenants.api.sign_up import TokenOnly
from tenants.api.tenants import TenantAnswer
from tenants.models import Tenant, User
from tenants.roles import Role

TAG = "Invitations"
operation = partial(extend_schema, tags=[TAG])


class InvitationAnswer(serializers.Serializer[object]):
    """An invitation that has not been accepted."""

    id = serializers.UUIDField()
    email = serializers.EmailField()
    role = serializers.ChoiceField(ROLES)
    state = serializers.ChoiceField(["open", "expired"])
    invited_by = serializers.EmailField(allow_null=True)
    link = serializers.URLField(
        allow_null=True,
        help_text="The link that accepts the invitation, if this installation sends no mail; "
        "otherwise null.",
    )
    expires_at = serializers.DateTimeField()
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class InvitingTenantAnswer(serializers.Serializer[object]):
    """The tenant of an invitation."""

    slug = serializers.CharField()
    name = serializers.CharField()


class InvitationForInvitedAnswer(serializers.Serializer[object]):
    """An invitation, as seen by the holder of its link."""

    tenant = InvitingTenantAnswer()
    email = serializers.EmailField()
    role = serializers.ChoiceField(ROLES)
    invited_by = serializers.CharField(allow_null=True)
    expires_at = serializers.DateTimeField()
    has_account = serializers.BooleanField(
        help_text="Whether to sign in and accept, or to sign up."
    )


class InvitationCreation(BodySerializer):
    """The address to invite, and the role."""

    email = AddressField()
    role = serializers.ChoiceField(ROLES)


_INVITATION = OpenApiExample(
    "A developer", {"email": "grace@example.com", "role": "developer"}, request_only=True
)


class InvitingView(TenantView):
    """A view that sends invitations."""

    secret_fields = ("link",)

    def tenant_row(self) -> Tenant:
        self.count(invitation_limits(str(self.tenant.id)))
        return Tenant.objects.select_related("plan", "quota").get(pk=self.tenant.id)


class InvitationsView(InvitingView):
    """The open invitations of a tenant."""

    roles: ClassVar = {"GET": Role.ADMIN, "POST": Role.ADMIN}

    @operation(
        "invitations_list", summary="List open invitations", responses=page_of(InvitationAnswer)
    )
    def get(self, request: Request, tenant: str) -> Response:
        rows = actions.open_invitations().select_related("invited_by")
        return Response(
            page(request, rows, actions.describe_for_admins, name=f"invitations:{self.tenant.id}")
        )

    @operation(
        "invitations_create",
        summary="Invite a member",
        description="Mails the address a link that is valid for seven days. An installation that "
        "sends no mail returns the link instead. Only owners may invite owners. Open invitations "
        "count toward the quota of members.",
        request=InvitationCreation,
        responses={201: InvitationAnswer},
        examples=[_INVITATION],
    )
    def post(self, request: Request, tenant: str) -> Response:
        values = self.body(InvitationCreation)
        row = actions.do_invite(
            self.principal, self.tenant_row(), str(values["email"]), Role(str(values["role"]))
        )
        location = self.url("invitations", str(row.id))
        return self.one(
            actions.describe_for_admins(row), row.version, status=201, location=location
        )


class InvitationView(TenantView):
    """One open invitation."""

    roles: ClassVar = {"GET": Role.ADMIN, "DELETE": Role.ADMIN}

    @operation("invitations_read", summary="Read an invitation", responses=InvitationAnswer)
    def get(self, request: Request, tenant: str, invitation: UUID) -> Response:
        row = find(actions.open_invitations().select_related("invited_by"), pk=invitation)
        return self.one(actions.describe_for_admins(row), row.version)

    @operation("invitations_delete", summary="Revoke an invitation", responses={204: None})
    def delete(self, request: Request, tenant: str, invitation: UUID) -> Response:
        row = find_for_change(request, actions.open_invitations(), pk=invitation)
        actions.do_withdraw(self.principal, row)
        return Response(None, status=204)


class InvitationResendView(InvitingView):
    """Sends an invitation again."""

    roles: ClassVar = {"POST": Role.ADMIN}

    @operation(
        "invitations_resend",
        summary="Resend an invitation",
        description="Mails a new link, which is valid for seven days.",
        request=None,
        responses=InvitationAnswer,
    )
    def post(self, request: Request, tenant: str, invitation: UUID) -> Response:
        row = find_for_change(request, actions.open_invitations(), pk=invitation)
        actions.do_resend(self.principal, self.tenant_row(), row)
        return self.one(actions.describe_for_admins(row), row.version)


class InvitationLookUpView(SignInView):
    """An invitation, for its holder, who may not have an account yet."""

    def prepare(self, request: Request) -> None:
        self.count(link_limits())

    @operation(
        "invitations_look_up",
        summary="Read an invitation by its link",
        description="A POST, so that the token is not part of a URL, which might be logged.",
        request=TokenOnly,
        responses=InvitationForInvitedAnswer,
        auth=[],
    )
    def post(self, request: Request) -> Response:
        invitation = actions.find_by_token(str(self.body(TokenOnly)["token"]))
        actions.check_usable(invitation)
        has_account = actions.has_account(invitation.email)
        return Response(actions.describe_for_invited(invitation, has_account=has_account))


class InvitationAcceptView(ConsoleView):
    """The acceptance of an invitation."""

    @operation(
        "invitations_accept",
        summary="Accept an invitation",
        description="The caller must be signed in as the user whose address was invited.",
        request=TokenOnly,
        responses=TenantAnswer,
    )
    def post(self, request: Request) -> Response:
        self.count(link_limits())
        invitation = actions.find_by_token(str(self.body(TokenOnly)["token"]))
        user = find(User.objects.all(), pk=self.user_id)
        with scoped(tenant_id=invitation.tenant_id, user_id=self.user_id):
            actions.do_accept(invitation, user)
        return self.one(tenant_actions.describe(invitation.tenant), invitation.tenant.version)


urlpatterns = [
    path("tenants/<str:tenant>/invitations", InvitationsView.as_view()),
    path(
        "tenants/<str:tenant>/invitations/<uuid:invitation>:resend", InvitationResendView.as_view()
    ),
    path("tenants/<str:tenant>/invitations/<uuid:invitation>", InvitationView.as_view()),
    path("invitations:look-up", InvitationLookUpView.as_view()),
    path("invitations:accept", InvitationAcceptView.as_view()),
]
