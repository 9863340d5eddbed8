"""Base views of the account calls."""

from __future__ import annotations

from uuid import UUID

from rest_framework.request import Request

from foundation.errors import Forbidden
from tenants.api.base import AnonymousView, UserView
from tenants.credentials import sessions
from tenants.principals import Principal, PrincipalKind


class SignInView(AnonymousView):
    """A call without credentials that pages of other origins must not make. Expensive work, such as
    hashing a password, is done in `prepare`, before a database connection is held.
    """

    def enter(self, request: Request, **kwargs: str) -> None:
        super().enter(request, **kwargs)
        if request.method == "POST":
            sessions.check_origin(request)
            # Read here, so that the idempotency record can read the body again.
            _ = request.body
            self.prepare(request)

    def prepare(self, request: Request) -> None:
        """Make the checks that need no transaction."""


class ConsoleView(UserView):
    """For console sessions only: a personal token cannot take over its owner's account."""

    def enter(self, request: Request, **kwargs: str) -> None:
        super().enter(request, **kwargs)
        require_session(self.principal)


def require_session(principal: Principal) -> UUID:
    """Return the user, or raise `Forbidden` if the caller has no console session."""
    if principal.kind is not PrincipalKind.SESSION or principal.user_id is None:
        raise Forbidden("This requires a console session, not a key or token: sign in.")
    return principal.user_id
