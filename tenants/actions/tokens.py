"""Create and revoke personal tokens."""

from __future__ import annotations

import datetime
from uuid import UUID

from django.db import models
from django.utils import timezone

from foundation.api.rendering import timestamp
from foundation.errors import Conflict, QuotaExceeded
from foundation.json_types import JsonObject
from foundation.scope import scoped
from tenants import audit, keys
from tenants.actions.accounts import serialize_calls
from tenants.models import PersonalToken
from tenants.principals import Principal

#: Maximum number of working tokens per user.
MAX_TOKENS = 50


def describe(token: PersonalToken) -> JsonObject:
    """Return a token as the API shows it: everything but its secret."""
    return {
        "id": str(token.id),
        "name": token.name,
        "key_id": token.key_id,
        "tenant_id": str(token.tenant_id) if token.tenant_id else None,
        "tenant": token.tenant.slug if token.tenant else None,
        "state": state(token, timezone.now()),
        "expires_at": _moment(token.expires_at),
        "last_used_at": _moment(token.last_used_at),
        "revoked_at": _moment(token.revoked_at),
        "created_at": timestamp(token.created_at),
        "updated_at": timestamp(token.updated_at),
    }


def describe_with_user(token: PersonalToken) -> JsonObject:
    """Return a token as the admins of its tenant see it. The caller has loaded the user."""
    return {**describe(token), "user_id": str(token.user_id), "user_email": token.user.email}


def state(token: PersonalToken, now: datetime.datetime) -> str:
    """Return a token's state: active, or why it is not."""
    if token.revoked_at is not None:
        return "revoked"
    if token.expires_at is not None and token.expires_at <= now:
        return "expired"
    return "active"


def _moment(moment: datetime.datetime | None) -> str | None:
    return timestamp(moment) if moment else None


def _target(token: PersonalToken) -> audit.AuditTarget:
    return audit.AuditTarget("token", str(token.id))


def of_user(user_id: UUID) -> models.QuerySet[PersonalToken]:
    """Return all tokens of a user, bound to a tenant or not. Runs in the user's scope."""
    return PersonalToken.objects.filter(user_id=user_id).select_related("tenant")


def of_tenant(tenant_id: UUID, user_id: UUID | None = None) -> models.QuerySet[PersonalToken]:
    """Return a tenant's tokens, of one user or of all. Runs in the tenant's scope."""
    rows = PersonalToken.objects.filter(tenant_id=tenant_id).select_related("tenant")
    return rows if user_id is None else rows.filter(user_id=user_id)


def working(tokens: models.QuerySet[PersonalToken]) -> models.QuerySet[PersonalToken]:
    """Return the tokens that are currently accepted."""
    unexpired = models.Q(expires_at=None) | models.Q(expires_at__gt=timezone.now())
    return tokens.filter(unexpired, revoked_at=None)


def do_create(
    principal: Principal,
    user_id: UUID,
    name: str,
    expires_at: datetime.datetime | None,
    *,
    tenant_id: UUID | None = None,
) -> tuple[PersonalToken, str]:
    """Create a token. Return it with its text, which is not stored and cannot be shown again."""
    serialize_calls(user_id)
    if working(of_user(user_id)).count() >= MAX_TOKENS:
        raise QuotaExceeded(f"A user may have at most {MAX_TOKENS} tokens; revoke one first.")
    minted = keys.mint(keys.Prefix.PERSONAL)
    token = PersonalToken.objects.create(
        user_id=user_id,
        tenant_id=tenant_id,
        name=name,
        key_id=minted.key_id,
        secret_hash=keys.stored_hash(minted.text),
        expires_at=expires_at,
    )
    if tenant_id is not None:
        audit.record(principal, "token.created", _target(token), after=describe(token))
    return token, minted.text


def do_revoke(principal: Principal, token: PersonalToken) -> None:
    """Revoke a token. All processes reject it within a second. The caller holds the row lock."""
    if token.revoked_at is not None:
        raise Conflict("The token has already been revoked.")
    before = describe(token)
    token.revoked_at = timezone.now()
    token.save_next_version()
    if token.tenant_id is not None:
        with scoped(tenant_id=token.tenant_id, user_id=principal.user_id):
            audit.record(
                principal, "token.revoked", _target(token), before=before, after=describe(token)
            )


def do_revoke_all(principal: Principal, tokens: models.QuerySet[PersonalToken]) -> int:
    """Revoke the tokens that still work; return how many."""
    revoked = list(working(tokens).select_for_update(of=("self",)))
    for token in revoked:
        do_revoke(principal, token)
    return len(revoked)
