"""`/api/v1/me`: the signed-in user's own account."""

from __future__ import annotations

from functools import partial

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.bodies import BodySerializer
from foundation.api.preconditions import check_if_match
from foundation.errors import FieldProblem, InvalidBody
from tenants.actions import accounts, tokens
from tenants.api.account_forms import (
    AddressField,
    PasswordField,
    mail_limits,
    password_check_limits,
)
from tenants.api.base import ConsoleView, UserView, find, require_session
from tenants.api.forms import LabelField
from tenants.api.sessions import UserAnswer
from tenants.credentials import passwords
from tenants.models import User

TAG = "Account"
operation = partial(extend_schema, tags=[TAG])


class MeAnswer(UserAnswer):
    """The signed-in user."""

    pending_email = serializers.EmailField(
        allow_null=True, help_text="The new address, until its owner opens the link mailed to it."
    )


class MeChange(BodySerializer):
    """The fields of an account that its user can change."""

    name = LabelField(required=False, allow_blank=True)
    email = AddressField(
        required=False, help_text="Takes effect when the link mailed to it is opened."
    )
    current_password = PasswordField(
        required=False, help_text="Required to change the address.", write_only=True
    )


class PasswordChange(BodySerializer):
    """A new password."""

    current_password = PasswordField()
    new_password = PasswordField()
    revoke_tokens = serializers.BooleanField(
        default=False, help_text="Also revoke all of your personal tokens."
    )


class PasswordChangedAnswer(serializers.Serializer[object]):
    """What was revoked with the password."""

    ended_sessions = serializers.IntegerField()
    revoked_tokens = serializers.IntegerField()


_NEW_ADDRESS = OpenApiExample(
    "Another address",
    {"email": "ada@example.org", "current_password": "correct horse battery"},
    request_only=True,
)
_NEW_PASSWORD = OpenApiExample(
    "Another password",
    {"current_password": "correct horse battery", "new_password": "a much longer secret"},
    request_only=True,
)


class PasswordCheckingView(UserView):
    """A view whose calls may require the user's password again."""

    def check_password(self, user: User, password: str) -> None:
        """Raise unless the password is right."""
        self.count(password_check_limits(str(self.user_id)))
        if not passwords.is_right(user, password):
            problem = FieldProblem("/current_password", "wrong_password", "The password is wrong.")
            raise InvalidBody(errors=[problem])


class MeView(PasswordCheckingView):
    """The user's account."""

    def enter(self, request: Request, **kwargs: str) -> None:
        super().enter(request, **kwargs)
        if request.method == "PATCH":
            require_session(self.principal)

    @operation("me_read", summary="Read your account", responses=MeAnswer)
    def get(self, request: Request) -> Response:
        user = find(User.objects.all(), pk=self.user_id)
        return self.one(accounts.describe_with_pending_email(user), user.version)

    @operation(
        "me_change",
        summary="Change your account",
        description="A new address takes effect when the link mailed to it is opened; the old "
        "address is notified. Setting the current address cancels a pending change.",
        request=MeChange,
        responses=MeAnswer,
        examples=[_NEW_ADDRESS],
    )
    def patch(self, request: Request) -> Response:
        values = self.body(MeChange)
        user = find(User.objects.select_for_update(of=("self",)), pk=self.user_id)
        check_if_match(request, user.version)
        if "email" in values:
            self._change_email(user, str(values["email"]), values.get("current_password"))
        if "name" in values:
            accounts.do_rename(user, str(values["name"]))
        return self.one(accounts.describe_with_pending_email(user), user.version)

    def _change_email(self, user: User, email: str, password: object) -> None:
        if not isinstance(password, str):
            problem = FieldProblem(
                "/current_password", "required", "Required to change the address."
            )
            raise InvalidBody(errors=[problem])
        self.check_password(user, password)
        self.count(mail_limits(email))
        accounts.do_request_email_change(user, email)


class PasswordView(PasswordCheckingView, ConsoleView):
    """The user's password."""

    @operation(
        "me_change_password",
        summary="Change your password",
        description="Ends all other sessions and notifies you by mail. Personal tokens stay valid "
        "unless `revoke_tokens` is true.",
        request=PasswordChange,
        responses=PasswordChangedAnswer,
        examples=[_NEW_PASSWORD],
    )
    def post(self, request: Request) -> Response:
        values = self.body(PasswordChange)
        user = find(User.objects.all(), pk=self.user_id)
        self.check_password(user, str(values["current_password"]))
        ended = accounts.do_change_password(
            user, str(values["new_password"]), keep=self.principal.credential_id
        )
        revoked = 0
        if values["revoke_tokens"]:
            revoked = tokens.do_revoke_all(self.principal, tokens.of_user(self.user_id))
        return Response({"ended_sessions": ended, "revoked_tokens": revoked})


urlpatterns = [
    path("me", MeView.as_view()),
    path("me/password", PasswordView.as_view()),
]
