"""Links, mailed or printed: what makes them unguessable and usable only once.

A link's token is derived from the installation's secret key, its purpose and the id of the row it
refers to. So the mail task needs only the id, no token is stored in the task outbox or any other
table, and a mail that is sent twice contains the same link. The database stores a keyed hash of the
token, by which the row is found. The token is in the URL's fragment, which browsers send to no
server and in no `Referer`.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import hmac
from collections.abc import Mapping
from types import MappingProxyType
from uuid import UUID

from django.utils import timezone

from foundation.environment import environment
from foundation.errors import FieldProblem, InvalidBody, ResourceGone
from tenants import keys
from tenants.models import EmailProof, Purpose

#: A token is 32 bytes in base 64 without padding.
TOKEN_PATTERN = r"[A-Za-z0-9_-]{43}"
UNUSABLE = "The link has been used or has expired. Request a new one."


#: The console's page that takes the token.
_PAGES: Mapping[Purpose, str] = MappingProxyType(
    {
        Purpose.VERIFY: "verify-email",
        Purpose.RESET: "reset-password",
        Purpose.CHANGE: "verify-email",
        Purpose.INVITATION: "invitation",
        Purpose.SIGN_IN: "sign-in",
    }
)
LIFETIMES: Mapping[Purpose, datetime.timedelta] = MappingProxyType(
    {
        Purpose.VERIFY: datetime.timedelta(days=2),
        Purpose.RESET: datetime.timedelta(hours=1),
        Purpose.CHANGE: datetime.timedelta(days=2),
        Purpose.INVITATION: datetime.timedelta(days=7),
        Purpose.SIGN_IN: datetime.timedelta(minutes=15),
    }
)


def token(purpose: Purpose, about: UUID) -> str:
    """Return the token of the link about the row with this id."""
    key = environment().rillbase_secret_key.get_secret_value().encode()
    mac = hmac.new(key, f"link:{purpose}:{about}".encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(mac).decode().rstrip("=")


def token_hash(purpose: Purpose, about: UUID) -> bytes:
    """Return the stored hash of a link's token."""
    return keys.stored_hash(token(purpose, about))


def url(purpose: Purpose, about: UUID) -> str:
    """Return the link itself."""
    base = environment().rillbase_public_url.rstrip("/")
    return f"{base}/{_PAGES[purpose]}#token={token(purpose, about)}"


def issue(user_id: UUID, purpose: Purpose, *, email: str = "", using: str = "auth") -> EmailProof:
    """Create a link for a user. Earlier ones stay valid until one of them is used."""
    proof = EmailProof(
        user_id=user_id,
        purpose=purpose,
        email=email,
        expires_at=timezone.now() + LIFETIMES[purpose],
    )
    proof.token_hash = token_hash(purpose, proof.id)
    proof.save(using=using, force_insert=True)
    return proof


def redeem(presented: str, *purposes: Purpose) -> EmailProof:
    """Lock and return the proof of a token, or raise why the token is invalid."""
    proof = (
        EmailProof.objects.using("auth")
        .select_for_update(of=("self",))
        .select_related("user")
        .filter(token_hash=keys.stored_hash(presented), purpose__in=purposes)
        .first()
    )
    if proof is None:
        raise unknown_token()
    if proof.used_at is not None or proof.expires_at <= timezone.now():
        raise ResourceGone(UNUSABLE)
    if not proof.user.is_active:
        raise unknown_token()
    return proof


def use_up(proof: EmailProof) -> None:
    """Invalidate this link and all others of its kind."""
    EmailProof.objects.using("auth").filter(
        user_id=proof.user_id, purpose=proof.purpose, used_at=None
    ).update(used_at=timezone.now())


def unknown_token() -> InvalidBody:
    """Return the error for a token that belongs to no link."""
    problem = FieldProblem("/token", "invalid_token", "The link is not valid. Copy all of it.")
    return InvalidBody(errors=[problem])
