"""Start and end console sessions."""

from __future__ import annotations

from functools import partial

from django.db import models, transaction
from django.utils import timezone

from foundation.api.rendering import timestamp
from foundation.errors import EmailNotVerified, InvalidCredentials
from foundation.json_types import JsonObject
from tenants import keys
from tenants.credentials import facts, passwords, sessions
from tenants.models import User, UserSession

#: Beyond this number, a user's oldest sessions are ended.
MAX_SESSIONS = 50


def describe(session: UserSession, current: object) -> JsonObject:
    """Return a session as its user sees it; `current` is the id of the requesting session."""
    return {
        "id": str(session.id),
        "current": session.id == current,
        "address": session.address,
        "user_agent": session.user_agent,
        "created_at": timestamp(session.created_at),
        "last_seen_at": timestamp(session.last_seen_at),
        "expires_at": timestamp(session.expires_at),
    }


def check_login(email: str, password: str) -> User:
    """Return the user with this address and password.

    Unknown addresses, wrong passwords and inactive accounts get the same response after the same
    time. Only a caller that knows the password learns that the address is not verified.
    """
    user = User.objects.using("auth").filter(email=email).first()
    if not passwords.is_right(user, password) or user is None or not user.is_active:
        raise InvalidCredentials("The email address or the password is wrong.")
    if user.email_verified_at is None:
        raise EmailNotVerified(
            "The email address is not verified. Open the link in the email that you received, or "
            "request another one."
        )
    return user


def do_log_in(user: User, user_agent: str, replaced: str | None) -> tuple[UserSession, str]:
    """Open a session under a new cookie value, and end the session the browser sent."""
    own = UserSession.objects.using("auth")
    if replaced:
        do_end(own.filter(token_hash=keys.stored_hash(replaced)))
    User.objects.using("auth").filter(pk=user.pk).update(last_login=timezone.now())
    session, token = sessions.start(user, user_agent)
    newest = own.filter(user=user).order_by("-id").values("id")[:MAX_SESSIONS]
    do_end(own.filter(user=user).exclude(pk__in=newest))
    return session, token


def do_log_in_first(user: User, user_agent: str, replaced: str | None) -> tuple[UserSession, str]:
    """Open the first session of an account, in the transaction that creates the account.

    The session that the browser sent belongs to another user; it ends once the new one exists.
    """
    if replaced:
        previous = UserSession.objects.using("auth").filter(token_hash=keys.stored_hash(replaced))
        transaction.on_commit(partial(do_end, previous), using="default", robust=True)
    return sessions.start(user, user_agent, using="default")


def do_end(ended: models.QuerySet[UserSession]) -> int:
    """End sessions. This process rejects their cookies at once, others within a second."""
    hashes = [bytes(token_hash) for token_hash in ended.values_list("token_hash", flat=True)]
    count, _ = ended.delete()
    transaction.on_commit(partial(_forget, hashes), using=ended.db)
    return count


def _forget(hashes: list[bytes]) -> None:
    for token_hash in hashes:
        facts.forget_session(token_hash)
