"""Console sessions by cookie, and the CSRF token that goes with them.

The cookie holds a random value; the database stores its keyed hash. The CSRF token is derived from
the cookie's value, so it needs no storage, belongs to one session and ends with it.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
from urllib.parse import urlsplit

from django.utils import timezone
from rest_framework.response import Response

from foundation.environment import environment
from foundation.errors import CsrfFailed
from foundation.request_context import RequestHead, client_address
from tenants import keys
from tenants.models import User, UserSession

LIFETIME = datetime.timedelta(days=14)
CSRF_HEADER = "X-CSRF-Token"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_USER_AGENT_CHARS = 300


def cookie_name() -> str:
    """Return the cookie's name; browsers bind `__Host-` cookies to this host over https."""
    return "__Host-rillbase_session" if _secure() else "rillbase_session"


def start(user: User, user_agent: str, using: str = "auth") -> tuple[UserSession, str]:
    """Open a session for a user just authenticated. Return it and the cookie's value."""
    token = keys.random_token()
    now = timezone.now()
    session = UserSession.objects.using(using).create(
        user=user,
        token_hash=keys.stored_hash(token),
        address=client_address.get() or None,
        user_agent=user_agent[:MAX_USER_AGENT_CHARS],
        last_seen_at=now,
        expires_at=now + LIFETIME,
    )
    return session, token


def set_cookie(response: Response, token: str) -> None:
    """Set the session cookie: not readable by scripts, not sent by other sites."""
    response.set_cookie(
        cookie_name(),
        token,
        max_age=int(LIFETIME.total_seconds()),
        secure=_secure(),
        httponly=True,
        samesite="Lax",
    )


def clear_cookie(response: Response) -> None:
    """Delete the session cookie."""
    response.delete_cookie(cookie_name(), samesite="Lax")


def csrf_token(token: str) -> str:
    """Return the CSRF token of the session with this cookie value."""
    key = environment().rillbase_secret_key.get_secret_value().encode()
    return hmac.new(key, b"csrf:" + token.encode(), hashlib.sha256).hexdigest()


def check_csrf(request: RequestHead, token: str) -> None:
    """Reject a mutating call that another site could have made the browser send."""
    if request.method in SAFE_METHODS:
        return
    check_origin(request)
    presented = request.headers.get(CSRF_HEADER, "")
    if not hmac.compare_digest(presented.encode(), csrf_token(token).encode()):
        raise CsrfFailed(f"Send the session's CSRF token in the header {CSRF_HEADER}.")


def check_origin(request: RequestHead) -> None:
    """Reject a call from a page of another origin. Programs send no Origin and pass."""
    origin = request.headers.get("Origin")
    if origin is None:
        return
    public = urlsplit(environment().rillbase_public_url)
    allowed = {f"{public.scheme}://{public.netloc}", f"{request.scheme}://{request.get_host()}"}
    if origin not in allowed:
        raise CsrfFailed("Calls with a session cookie are accepted only from the console's origin.")


def _secure() -> bool:
    return environment().rillbase_public_url.startswith("https://")
