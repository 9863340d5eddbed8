"""Create, change, rotate and revoke API keys."""

from __future__ import annotations

import datetime
from typing import TypedDict

from django.db import models
from django.utils import timezone

from foundation.api.rendering import timestamp
from foundation.errors import Conflict, Forbidden
from foundation.json_types import JsonObject
from foundation.scope import current_tenant_id
from tenants import audit, keys
from tenants.models import ApiKey, Tenant
from tenants.principals import Principal
from tenants.quotas import ensure_room
from tenants.roles import ADMIN_SCOPE, Role


class KeyValues(TypedDict, total=False):
    """The fields of a key that a caller may set."""

    kind: str
    name: str
    scopes: list[str]
    collections: list[str]
    allowed_networks: list[str]
    expires_at: datetime.datetime | None


STATES = ("active", "expired", "revoked")


def describe(key: ApiKey) -> JsonObject:
    """Return a key as the API shows it: everything but its secret."""
    return {
        "id": str(key.id),
        "kind": key.kind,
        "name": key.name,
        "key_id": key.key_id,
        "key": key.public_text or None,
        "scopes": key.scopes,
        "collections": key.collections,
        "allowed_networks": key.allowed_networks,
        "state": state(key, timezone.now()),
        "expires_at": _moment(key.expires_at),
        "last_used_at": _moment(key.last_used_at),
        "revoked_at": _moment(key.revoked_at),
        "successor_id": str(key.successor_id) if key.successor_id else None,
        "created_at": timestamp(key.created_at),
        "updated_at": timestamp(key.updated_at),
    }


def state(key: ApiKey, now: datetime.datetime) -> str:
    """Return a key's state: active, or why it is not."""
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is not None and key.expires_at <= now:
        return "expired"
    return "active"


def _moment(moment: datetime.datetime | None) -> str | None:
    return timestamp(moment) if moment else None


def _target(key: ApiKey) -> audit.AuditTarget:
    return audit.AuditTarget("api_key", str(key.id))


def check_scopes(principal: Principal, scopes: list[str]) -> None:
    """Raise `Forbidden` if the caller would create a key with more rights than its own."""
    role = principal.control_role
    if ADMIN_SCOPE in scopes and (role is None or not role.at_least(Role.ADMIN)):
        raise Forbidden("Only admins may create keys with the scope `admin`.")


def counted() -> models.QuerySet[ApiKey]:
    """Return the keys that count against the quota. A rotated key no longer counts."""
    return ApiKey.objects.filter(revoked_at=None, successor=None)


def _overlapping() -> models.QuerySet[ApiKey]:
    """Return the rotated keys that still work alongside their successors."""
    rotated = ApiKey.objects.filter(revoked_at=None, successor__isnull=False)
    return rotated.filter(expires_at__gt=timezone.now())


def do_create(principal: Principal, tenant: Tenant, values: KeyValues) -> tuple[ApiKey, str]:
    """Create a key. Return it with its text, which is not stored and cannot be shown again."""
    check_scopes(principal, values["scopes"])
    ensure_room(tenant, "api_keys", counted())
    key, minted = _new(ApiKey.Kind(values["kind"]), principal)
    _apply(key, values)
    key.save(force_insert=True)
    audit.record(principal, "api_key.created", _target(key), after=describe(key))
    return key, minted.text


def do_change(principal: Principal, key: ApiKey, changes: KeyValues) -> None:
    """Change what a key may do."""
    _refuse_revoked(key)
    if key.successor_id is not None and "expires_at" in changes:
        _refuse_longer_overlap(key, changes["expires_at"])
    before = describe(key)
    _apply(key, changes)
    key.save_next_version()
    audit.record(principal, "api_key.updated", _target(key), before=before, after=describe(key))


def do_revoke(principal: Principal, key: ApiKey) -> None:
    """Revoke a key. All processes reject it within a second."""
    _refuse_revoked(key)
    before = describe(key)
    key.revoked_at = timezone.now()
    key.save_next_version()
    audit.record(principal, "api_key.revoked", _target(key), before=before, after=describe(key))


def do_rotate(
    principal: Principal, tenant: Tenant, key: ApiKey, overlap: datetime.timedelta
) -> tuple[ApiKey, str]:
    """Create a successor with the same rights; the old key works until the overlap ends.

    The successor takes over the key's place in the quota, so keys can be rotated even when the
    quota is used up. At most as many keys again may be in their overlap: otherwise rotation could
    produce any number of working keys.
    """
    _refuse_revoked(key)
    if key.successor_id is not None:
        raise Conflict("The key has already been rotated; rotate its successor.")
    if state(key, timezone.now()) != "active":
        raise Conflict("The key has expired; create a new one.")
    if overlap:
        ensure_room(tenant, "api_keys", _overlapping())
    successor, minted = _new(ApiKey.Kind(key.kind), principal)
    successor.name = key.name
    successor.scopes = key.scopes
    successor.collections = key.collections
    successor.allowed_networks = key.allowed_networks
    successor.expires_at = key.expires_at
    successor.save(force_insert=True)
    now = timezone.now()
    before = describe(key)
    key.successor = successor
    key.expires_at = min(now + overlap, key.expires_at or now + overlap)
    key.save_next_version()
    audit.record(principal, "api_key.rotated", _target(key), before=before, after=describe(key))
    audit.record(principal, "api_key.created", _target(successor), after=describe(successor))
    return successor, minted.text


def _refuse_revoked(key: ApiKey) -> None:
    if key.revoked_at is not None:
        raise Conflict("The key has been revoked.")


def _refuse_longer_overlap(key: ApiKey, expires_at: datetime.datetime | None) -> None:
    """Raise if a rotated key, which no longer counts against the quota, would live longer."""
    if key.expires_at is not None and (expires_at is None or expires_at > key.expires_at):
        raise Conflict("The key has been rotated; its life cannot be extended.")


def _new(kind: ApiKey.Kind, principal: Principal) -> tuple[ApiKey, keys.ParsedKey]:
    """Return a key of the tenant in scope, not yet saved, and its text."""
    secret = kind is ApiKey.Kind.SECRET
    minted = keys.mint(keys.Prefix.SECRET if secret else keys.Prefix.PUBLISHABLE)
    key = ApiKey(
        tenant_id=current_tenant_id(),
        kind=kind,
        key_id=minted.key_id,
        secret_hash=keys.stored_hash(minted.text),
        public_text="" if secret else minted.text,
        created_by=principal.user_id,
    )
    return key, minted


def _apply(key: ApiKey, values: KeyValues) -> None:
    for field, value in values.items():
        setattr(key, field, value)
