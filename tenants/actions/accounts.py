"""User accounts: create, verify, rename, change the address or the password."""

from __future__ import annotations

from uuid import UUID

from django.db import IntegrityError, models, transaction
from django.utils import timezone

from foundation import request_context
from foundation.api.rendering import timestamp
from foundation.errors import Conflict
from foundation.json_types import JsonObject
from tenants import links
from tenants.actions import addresses, sessions
from tenants.credentials import passwords
from tenants.mail import LinkTo, MailTemplate, post
from tenants.models import EmailProof, Purpose, User, UserSession


def describe(user: User) -> JsonObject:
    """Return a user as the API shows it to that user."""
    return {
        "id": str(user.id),
        "email": user.email,
        "email_verified": user.email_verified_at is not None,
        "name": user.name,
        "is_staff": user.is_staff,
        "created_at": timestamp(user.created_at),
    }


def describe_with_pending_email(user: User) -> JsonObject:
    """Return a user and its unconfirmed new address. Runs in the user's scope."""
    waiting = (
        EmailProof.objects.filter(
            user_id=user.id,
            purpose=Purpose.CHANGE,
            used_at=None,
            expires_at__gt=timezone.now(),
        )
        .order_by("-id")
        .first()
    )
    return {**describe(user), "pending_email": waiting.email if waiting else None}


def do_sign_up(user: User) -> None:
    """Create an account whose address is not yet verified.

    An unverified account takes the password and name of the latest attempt, and links of earlier
    attempts become invalid. Otherwise a stranger could sign up first and wait for the owner of the
    address to confirm it. Verified accounts are not changed.
    """
    if not insert(user, using="auth"):
        _sign_up_again(user)
    addresses.note(addresses.AddressRequest.SIGN_UP, user.email)


def serialize_calls(user_id: UUID) -> None:
    """Serialize a user's calls that check a count, until the transaction commits.

    Otherwise concurrent calls would each see room for one more.
    """
    User.objects.select_for_update(of=("self",)).get(pk=user_id)


def insert(user: User, *, using: str) -> bool:
    """Insert a user; return whether the address was free."""
    try:
        with transaction.atomic(using=using):
            user.save(using=using, force_insert=True)
    except IntegrityError:
        return False
    return True


def _sign_up_again(attempt: User) -> None:
    unverified = User.objects.using("auth").filter(
        email=attempt.email, email_verified_at=None, last_login=None, is_staff=False
    )
    replaced = unverified.update(
        name=attempt.name, password=attempt.password, version=models.F("version") + 1
    )
    if replaced:
        proofs = EmailProof.objects.using("auth").filter(user__email=attempt.email)
        proofs.delete()


def do_verify(token: str) -> User:
    """Accept a mailed link as proof that its user owns the address."""
    proof = links.redeem(token, Purpose.VERIFY, Purpose.CHANGE)
    user = proof.user
    old_email = user.email
    user.email = proof.email or user.email
    user.email_verified_at = timezone.now()
    user.version += 1
    try:
        with transaction.atomic(using="auth"):
            user.save(using="auth", update_fields=["email", "email_verified_at", "version"])
    except IntegrityError:
        raise Conflict("The address now belongs to another account.") from None
    links.use_up(proof)
    if user.email != old_email:
        _drop_links(user, using="auth")
        post(MailTemplate.EMAIL_CHANGED, old_email, using="auth", new_email=user.email)
    return user


def do_reset_password(token: str, password: str) -> None:
    """Set a new password through a mailed link, and end all of the user's sessions."""
    user = links.redeem(token, Purpose.RESET).user
    passwords.check_rules(password, user)
    user.password = passwords.hashed(password)
    user.version += 1
    # The link has proved that the user owns the address.
    user.email_verified_at = user.email_verified_at or timezone.now()
    user.save(using="auth", update_fields=["password", "version", "email_verified_at"])
    _drop_links(user, using="auth")
    sessions.do_end(UserSession.objects.using("auth").filter(user=user))
    _notify_password_changed(user, using="auth")


def do_change_password(user: User, password: str, keep: UUID) -> int:
    """Set a new password and end all sessions but `keep`. Return how many ended."""
    passwords.check_rules(password, user, "/new_password")
    User.objects.filter(pk=user.pk).update(
        password=passwords.hashed(password), version=models.F("version") + 1
    )
    _drop_links(user, using="default")
    _notify_password_changed(user, using="default")
    return sessions.do_end(UserSession.objects.filter(user_id=user.pk).exclude(pk=keep))


def _drop_links(user: User, *, using: str) -> None:
    """Invalidate links requested under the old password or for the old address."""
    EmailProof.objects.using(using).filter(user_id=user.pk).delete()


def _notify_password_changed(user: User, *, using: str) -> None:
    post(
        MailTemplate.PASSWORD_CHANGED,
        user.email,
        using=using,
        at=timezone.now().strftime("%d %B %Y at %H:%M"),
        address=request_context.client_address.get() or "unknown",
    )


def do_rename(user: User, name: str) -> None:
    """Change a user's display name. The caller holds the row lock."""
    user.name = name
    user.version += 1
    user.save(update_fields=["name", "version"])


def do_request_email_change(user: User, email: str) -> None:
    """Mail a link to a new address; the account changes when the link is opened.

    Whether the address is free is checked only then: a response now would reveal to strangers who
    has an account. Links to addresses requested earlier become invalid.
    """
    EmailProof.objects.filter(user_id=user.pk, purpose=Purpose.CHANGE).delete()
    user.version += 1
    user.save(update_fields=["version"])
    if email == user.email:
        return
    proof = links.issue(user.id, Purpose.CHANGE, email=email, using="default")
    post(
        MailTemplate.CHANGE_EMAIL,
        email,
        link=LinkTo(Purpose.CHANGE, proof.id),
        old_email=user.email,
    )
