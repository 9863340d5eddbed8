"""`/api/v1/auth` and `/api/v1/me/sessions`: sign in, sign out, list sessions."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from django.urls import path
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from foundation.api.bodies import BodySerializer
from foundation.api.cursors import page
from tenants import keys
from tenants.actions import accounts, local_links
from tenants.actions import sessions as actions
from tenants.api.account_forms import (
    AddressField,
    LinkTokenField,
    PasswordField,
    link_limits,
    sign_in_limits,
)
from tenants.api.base import ConsoleView, SignInView, UserView, find, page_of
from tenants.credentials import sessions
from tenants.models import User, UserSession
from tenants.principals import PrincipalKind

TAG = "Sign-in"
operation = partial(extend_schema, tags=[TAG])
SESSIONS_TAG = "Account"


class UserAnswer(serializers.Serializer[object]):
    """A user, as shown to themselves."""

    id = serializers.UUIDField()
    email = serializers.EmailField()
    email_verified = serializers.BooleanField()
    name = serializers.CharField()
    is_staff = serializers.BooleanField(help_text="Whether the user may open the staff admin.")
    created_at = serializers.DateTimeField()


class SessionAnswer(serializers.Serializer[object]):
    """A console session of the user in one browser."""

    id = serializers.UUIDField()
    current = serializers.BooleanField(
        help_text="Whether this is the session that made the request."
    )
    address = serializers.IPAddressField(allow_null=True)
    user_agent = serializers.CharField()
    created_at = serializers.DateTimeField()
    last_seen_at = serializers.DateTimeField(help_text="Up to a minute old.")
    expires_at = serializers.DateTimeField()


class SignedInAnswer(serializers.Serializer[object]):
    """The signed-in user, and the token that mutating calls must send."""

    user = UserAnswer()
    session_id = serializers.UUIDField(allow_null=True)
    csrf_token = serializers.CharField(
        allow_null=True, help_text=f"Send it in the header {sessions.CSRF_HEADER}."
    )


class EndedAnswer(serializers.Serializer[object]):
    """How many sessions were ended."""

    ended = serializers.IntegerField()


class Login(BodySerializer):
    """An email address and a password."""

    email = AddressField()
    password = PasswordField()


_LOGIN = OpenApiExample(
    "A login",
    {"email": "ada@example.com", "password": "correct horse battery"},
    request_only=True,
)


_LINK_LOGIN = OpenApiExample(
    "A printed link", {"token": "vT3k1v0cYf0sQb8x2m0H3l9uPz5eGd7nJ4aRw6tKqXo"}, request_only=True
)


def signed_in(user: User, session_id: UUID | None, token: str | None) -> dict[str, object]:
    """Return the response that describes the current session."""
    return {
        "user": accounts.describe(user),
        "session_id": str(session_id) if session_id else None,
        "csrf_token": sessions.csrf_token(token) if token else None,
    }


def open_session(
    request: Request, user: User, *, is_new: bool = False, status: int = 200
) -> Response:
    """Sign in a user who has just authenticated, or whom the current transaction creates."""
    previous_token = request.COOKIES.get(sessions.cookie_name())
    agent = request.headers.get("User-Agent", "")
    log_in = actions.do_log_in_first if is_new else actions.do_log_in
    session, token = log_in(user, agent, previous_token)
    response = Response(signed_in(user, session.id, token), status=status)
    sessions.set_cookie(response, token)
    return response


class LoginView(SignInView):
    """Sign-in with a password."""

    secret_fields = ("csrf_token",)
    user: User

    def prepare(self, request: Request) -> None:
        values = self.body(Login)
        self.count(sign_in_limits(str(values["email"])))
        self.user = actions.check_login(str(values["email"]), str(values["password"]))

    @operation(
        "auth_login",
        summary="Sign in",
        description="Sets the session cookie. A wrong password and an unknown address get the same "
        "response. `email_not_verified` means that the password was right.",
        request=Login,
        responses=SignedInAnswer,
        examples=[_LOGIN],
        auth=[],
    )
    def post(self, request: Request) -> Response:
        return open_session(request, self.user)


class LinkLogin(BodySerializer):
    """The token of a link that the launcher has printed."""

    token = LinkTokenField()


class LinkLoginView(SignInView):
    """Sign-in with the link that is printed when a development machine starts."""

    secret_fields = ("csrf_token",)

    def prepare(self, request: Request) -> None:
        self.count(link_limits())
        local_links.require_local_caller()

    @operation(
        "auth_login_link",
        summary="Sign in with a printed link",
        description="Takes the token of the link that is printed when a development machine "
        "starts. It is valid for 15 minutes, once, and only from that machine.",
        request=LinkLogin,
        responses=SignedInAnswer,
        examples=[_LINK_LOGIN],
        auth=[],
    )
    def post(self, request: Request) -> Response:
        return open_session(request, local_links.do_redeem(str(self.body(LinkLogin)["token"])))


class LogoutView(SignInView):
    """Sign-out."""

    @operation(
        "auth_logout",
        summary="Sign out",
        description="Ends the session of the cookie, if there is one, and deletes the cookie.",
        request=None,
        responses={204: None},
    )
    def post(self, request: Request) -> Response:
        token = request.COOKIES.get(sessions.cookie_name())
        if token:
            session = UserSession.objects.using("auth").filter(token_hash=keys.stored_hash(token))
            if session.exists():
                sessions.check_csrf(request, token)
                actions.do_end(session)
        response = Response(None, status=204)
        sessions.clear_cookie(response)
        return response


class CurrentSessionView(UserView):
    """The current session."""

    @operation(
        "auth_session",
        summary="Read the current session",
        description="401 if nobody is signed in. With a personal token, `csrf_token` is null.",
        responses=SignedInAnswer,
    )
    def get(self, request: Request) -> Response:
        user = find(User.objects.all(), pk=self.user_id)
        if self.principal.kind is not PrincipalKind.SESSION:
            return Response(signed_in(user, None, None))
        token = request.COOKIES[sessions.cookie_name()]
        return Response(signed_in(user, self.principal.credential_id, token))


class SessionsView(ConsoleView):
    """The user's sessions."""

    @operation(
        "me_sessions_list",
        tags=[SESSIONS_TAG],
        summary="List your sessions",
        responses=page_of(SessionAnswer),
    )
    def get(self, request: Request) -> Response:
        rows = UserSession.objects.filter(user_id=self.user_id, expires_at__gt=timezone.now())
        return Response(
            page(
                request,
                rows,
                lambda row: actions.describe(row, self.principal.credential_id),
                name=f"sessions:{self.user_id}",
            )
        )

    @operation(
        "me_sessions_end_others",
        tags=[SESSIONS_TAG],
        summary="End all other sessions",
        responses={200: EndedAnswer},
    )
    def delete(self, request: Request) -> Response:
        own = UserSession.objects.filter(user_id=self.user_id)
        return Response({"ended": actions.do_end(own.exclude(pk=self.principal.credential_id))})


class SessionView(ConsoleView):
    """One session."""

    @operation(
        "me_sessions_end",
        tags=[SESSIONS_TAG],
        summary="End one of your sessions",
        responses={204: None},
    )
    def delete(self, request: Request, session: UUID) -> Response:
        own = UserSession.objects.filter(user_id=self.user_id)
        row = find(own, pk=session)
        actions.do_end(own.filter(pk=row.pk))
        response = Response(None, status=204)
        if row.pk == self.principal.credential_id:
            sessions.clear_cookie(response)
        return response


urlpatterns = [
    path("auth/login", LoginView.as_view()),
    path("auth/login-link", LinkLoginView.as_view()),
    path("auth/logout", LogoutView.as_view()),
    path("auth/session", CurrentSessionView.as_view()),
    path("me/sessions", SessionsView.as_view()),
    path("me/sessions/<uuid:session>", SessionView.as_view()),
]
