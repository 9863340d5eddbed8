"""`/api/v1/auth`: sign up and verify an address."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial

from django.urls import path
from drf_spectacular.utils import OpenApiExample, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.bodies import BodySerializer
from foundation.api.idempotency import IdempotencyScope
from foundation.environment import environment
from foundation.errors import FieldProblem, InvalidBody, SignUpClosed
from foundation.scope import scoped
from tenants.actions import accounts, addresses, invitations
from tenants.api.account_forms import (
    AddressField,
    LinkTokenField,
    PasswordField,
    link_limits,
    mail_limits,
)
from tenants.api.base import SignInView
from tenants.api.forms import LabelField
from tenants.api.sessions import SignedInAnswer, open_session
from tenants.credentials import passwords
from tenants.models import Invitation, User

TAG = "Sign-up"
operation = partial(extend_schema, tags=[TAG])


class SignUp(BodySerializer):
    """The fields of a new account."""

    email = AddressField()
    password = PasswordField()
    name = LabelField(required=False, allow_blank=True, default="")
    invitation = LinkTokenField(
        required=False, help_text="The token from the link of an invitation."
    )


class AddressOnly(BodySerializer):
    """An email address."""

    email = AddressField()


class TokenOnly(BodySerializer):
    """The token of a mailed link."""

    token = LinkTokenField()


class NewPassword(BodySerializer):
    """The token of a mailed link, and a new password."""

    token = LinkTokenField()
    password = PasswordField()


class MailedAnswer(serializers.Serializer[object]):
    """The address to which a mail is sent, if applicable."""

    email = serializers.EmailField()


class VerifiedAnswer(serializers.Serializer[object]):
    """The address that has been verified."""

    email = serializers.EmailField()


_SIGN_UP = OpenApiExample(
    "A sign-up",
    {"email": "ada@example.com", "password": "correct horse battery", "name": "Ada"},
    request_only=True,
)
_TOKEN = "vT3k1v0cYf0sQb8x2m0H3l9uPz5eGd7nJ4aRw6tKqXo"
_ADDRESS_EXAMPLE = OpenApiExample("An address", {"email": "ada@example.com"}, request_only=True)
_TOKEN_EXAMPLE = OpenApiExample("A link's token", {"token": _TOKEN}, request_only=True)
_RESET_EXAMPLE = OpenApiExample(
    "A new password", {"token": _TOKEN, "password": "a much longer secret"}, request_only=True
)


class SignUpView(SignInView):
    """Sign-up."""

    secret_fields = ("csrf_token",)
    user: User
    invitation: Invitation | None = None

    def prepare(self, request: Request) -> None:
        values = self.body(SignUp)
        email = str(values["email"])
        token = values.get("invitation")
        _check_open(invited=token is not None)
        self.count(mail_limits(email))
        self.invitation = _find_invitation(str(token), email) if token is not None else None
        self.user = User(email=email, name=str(values["name"]))
        password = str(values["password"])
        passwords.check_rules(password, self.user)
        self.user.password = passwords.hashed(password)

    def transaction(self, request: Request) -> AbstractContextManager[object]:
        """Return one transaction that creates the account, the membership and the session of an
        invitee.
        """
        if self.invitation is None:
            return super().transaction(request)
        return scoped(tenant_id=self.invitation.tenant_id, user_id=self.user.id)

    def caller(self) -> IdempotencyScope:
        caller = super().caller()
        if self.invitation is None:
            return caller
        return replace(caller, tenant_id=self.invitation.tenant_id, using="default")

    @operation(
        "auth_sign_up",
        summary="Create an account",
        description="Without an invitation, the response is 202 and a mail is sent. The response "
        "is the same if the address already has an account; its owner is notified by mail. With "
        "an invitation to the address, the account and the membership are created and a session "
        "is opened: 201.",
        request=SignUp,
        responses={
            201: SignedInAnswer,
            202: OpenApiResponse(MailedAnswer, "A mail is on its way."),
        },
        examples=[_SIGN_UP],
        auth=[],
    )
    def post(self, request: Request) -> Response:
        if self.invitation is not None:
            invitations.do_sign_up(self.invitation, self.user)
            return open_session(request, self.user, is_new=True, status=201)
        accounts.do_sign_up(self.user)
        return Response({"email": self.user.email}, status=202)


def _check_open(*, invited: bool) -> None:
    """Raise `SignUpClosed` unless the installation allows this sign-up."""
    mode = environment().rillbase_sign_up
    if mode == "closed" or (mode == "invited" and not invited):
        raise SignUpClosed


def _find_invitation(token: str, email: str) -> Invitation:
    """Return the invitation to this address, with errors that refer to this body."""
    try:
        invitation = invitations.find_by_token(token)
    except InvalidBody as error:
        raise InvalidBody(
            errors=[FieldProblem("/invitation", e.code, e.detail) for e in error.errors]
        ) from None
    invitations.check_is_for(invitation, email)
    return invitation


class VerifyEmailView(SignInView):
    """The verification of an address."""

    def prepare(self, request: Request) -> None:
        self.count(link_limits())

    @operation(
        "auth_verify_email",
        summary="Verify an address",
        description="Takes the token of a mailed link, for a new account or a new address.",
        request=TokenOnly,
        responses=VerifiedAnswer,
        examples=[_TOKEN_EXAMPLE],
        auth=[],
    )
    def post(self, request: Request) -> Response:
        user = accounts.do_verify(str(self.body(TokenOnly)["token"]))
        return Response({"email": user.email})


class AddressView(SignInView):
    """A request for a mail to an address. The response reveals nothing about the address."""

    address_request: addresses.AddressRequest

    def prepare(self, request: Request) -> None:
        self.count(mail_limits(str(self.body(AddressOnly)["email"])))

    def note(self) -> Response:
        email = str(self.body(AddressOnly)["email"])
        addresses.note(self.address_request, email)
        return Response({"email": email}, status=202)


class ResendView(AddressView):
    """A request for another verification mail."""

    address_request = addresses.AddressRequest.VERIFY

    @operation(
        "auth_verify_email_resend",
        summary="Request another verification mail",
        description="Always 202. A mail is sent if an unverified account has the address.",
        request=AddressOnly,
        responses={202: MailedAnswer},
        examples=[_ADDRESS_EXAMPLE],
        auth=[],
    )
    def post(self, request: Request) -> Response:
        return self.note()


class PasswordResetView(AddressView):
    """A request for a link to set a new password."""

    address_request = addresses.AddressRequest.RESET

    @operation(
        "auth_password_reset",
        summary="Request a link to set a new password",
        description="Always 202. A mail is sent if the address has an account.",
        request=AddressOnly,
        responses={202: MailedAnswer},
        examples=[_ADDRESS_EXAMPLE],
        auth=[],
    )
    def post(self, request: Request) -> Response:
        return self.note()


class PasswordResetConfirmView(SignInView):
    """Sets a new password with a mailed link."""

    def prepare(self, request: Request) -> None:
        self.count(link_limits())

    @operation(
        "auth_password_reset_confirm",
        summary="Set a new password",
        description="Takes the token of a mailed link, which is valid for an hour and can be used "
        "once. Ends all sessions; sign in with the new password afterwards.",
        request=NewPassword,
        responses={204: None},
        examples=[_RESET_EXAMPLE],
        auth=[],
    )
    def post(self, request: Request) -> Response:
        values = self.body(NewPassword)
        accounts.do_reset_password(str(values["token"]), str(values["password"]))
        return Response(None, status=204)


urlpatterns = [
    path("auth/sign-up", SignUpView.as_view()),
    path("auth/verify-email", VerifyEmailView.as_view()),
    path("auth/verify-email:resend", ResendView.as_view()),
    path("auth/password-reset", PasswordResetView.as_view()),
    path("auth/password-reset:confirm", PasswordResetConfirmView.as_view()),
]
