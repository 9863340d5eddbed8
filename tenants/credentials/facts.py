"""What authentication needs to know, read before any tenant is known.

These look-ups use the role `rb_auth`, which may read credentials of all tenants and little else.
Results are frozen dataclasses, cached for at most a second.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from uuid import UUID

from foundation.ids import shared
from tenants.credentials.cache import ShortCache
from tenants.credentials.changes import CredentialChanges
from tenants.models import ApiKey, Membership, PersonalToken, Tenant, UserSession
from tenants.quotas import effective_limits
from tenants.roles import Role, expand_scopes

_ALIAS = "auth"


@dataclass(frozen=True, slots=True)
class TenantFacts:
    """The fields of a tenant needed to authorize a request."""

    id: UUID
    slug: str
    state: str
    limits: Mapping[str, int]
    cors_origins: frozenset[str]


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """An API key and its tenant."""

    id: UUID
    kind: str
    name: str
    secret_hash: bytes
    scopes: frozenset[str]
    collections: frozenset[str] | None
    allowed_networks: tuple[str, ...]
    expires_at: datetime.datetime | None
    revoked: bool
    last_used_at: datetime.datetime | None
    tenant: TenantFacts


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """A personal token and its user."""

    id: UUID
    secret_hash: bytes
    expires_at: datetime.datetime | None
    revoked: bool
    last_used_at: datetime.datetime | None
    user_id: UUID
    user_email: str
    user_active: bool
    tenant_id: UUID | None


@dataclass(frozen=True, slots=True)
class SessionFacts:
    """A console session and its user."""

    id: UUID
    expires_at: datetime.datetime
    last_seen_at: datetime.datetime
    user_id: UUID
    user_email: str
    user_active: bool


@dataclass(frozen=True, slots=True)
class MembershipFacts:
    """A user's role in a tenant."""

    tenant: TenantFacts
    role: Role


_keys: ShortCache[KeyFacts] = ShortCache()
_tokens: ShortCache[TokenFacts] = ShortCache()
_sessions: ShortCache[SessionFacts] = ShortCache()
_access: ShortCache[MembershipFacts] = ShortCache()
_tenants: ShortCache[TenantFacts] = ShortCache()


class NoFacts(LookupError):
    """No such credential, tenant or membership."""


def key_facts(key_id: str) -> KeyFacts:
    """Return the API key with this public id."""
    return _keys.get_or_load(key_id, lambda: _load_key(key_id))


def read_keys(key_ids: Collection[str]) -> None:
    """Reload these keys by one query. Missing ones are left to `key_facts`."""
    begin = _keys.now()
    rows = ApiKey.unscoped.using(_ALIAS).select_related("tenant__plan", "tenant__quota")
    for key in rows.filter(key_id__in=key_ids):
        _keys.put(key.key_id, _key(key), begin)


def token_facts(key_id: str) -> TokenFacts:
    """Return the personal token with this public id."""
    return _tokens.get_or_load(key_id, lambda: _load_token(key_id))


def session_facts(token_hash: bytes) -> SessionFacts:
    """Return the session whose cookie has this hash."""
    return _sessions.get_or_load(token_hash, lambda: _load_session(token_hash))


def access_facts(user_id: UUID, slug: str) -> MembershipFacts:
    """Return the user's role in the tenant with this slug."""
    return _access.get_or_load((user_id, slug), lambda: _load_access(user_id, slug))


def tenant_facts(slug: str) -> TenantFacts:
    """Return the tenant with this slug."""
    return _tenants.get_or_load(slug, lambda: _load_tenant(slug))


def forget_session(token_hash: bytes) -> None:
    """Evict a session from this process's cache. Others notice within a second."""
    _sessions.forget(token_hash)


def forget_access(user_id: UUID, slug: str) -> None:
    """Evict a membership and its tenant from this process's cache."""
    _access.forget((user_id, slug))
    _tenants.forget(slug)


def evict(changes: CredentialChanges) -> None:
    """Evict what other processes have changed."""
    for key_id in changes.keys:
        _keys.forget(key_id)
    for key_id in changes.tokens:
        _tokens.forget(key_id)
    for token_hash in changes.sessions:
        _sessions.forget(bytes.fromhex(token_hash))
    if users := changes.users:
        _tokens.evict(lambda _, token: token.user_id in users)
        _sessions.evict(lambda _, session: session.user_id in users)
        _access.evict(lambda key, _: isinstance(key, tuple) and key[0] in users)
    if tenants := changes.tenants:
        _keys.evict(lambda _, key: key.tenant.id in tenants)
        _access.evict(lambda _, access: access.tenant.id in tenants)
        _tenants.evict(lambda _, tenant: tenant.id in tenants)


def _tenant(tenant: Tenant) -> TenantFacts:
    return TenantFacts(
        shared(tenant.id),
        tenant.slug,
        tenant.state,
        effective_limits(tenant),
        frozenset(tenant.cors_origins),
    )


def _load_key(key_id: str) -> KeyFacts:
    rows = ApiKey.unscoped.using(_ALIAS).select_related("tenant__plan", "tenant__quota")
    key = rows.filter(key_id=key_id).first()
    if key is None:
        raise NoFacts
    return _key(key)


def _key(key: ApiKey) -> KeyFacts:
    return KeyFacts(
        id=key.id,
        kind=key.kind,
        name=key.name,
        secret_hash=bytes(key.secret_hash),
        scopes=expand_scopes(key.scopes),
        collections=frozenset(key.collections) or None,
        allowed_networks=tuple(key.allowed_networks),
        expires_at=key.expires_at,
        revoked=key.revoked_at is not None,
        last_used_at=key.last_used_at,
        tenant=_tenant(key.tenant),
    )


def _load_token(key_id: str) -> TokenFacts:
    rows = PersonalToken.objects.using(_ALIAS).select_related("user")
    token = rows.filter(key_id=key_id).first()
    if token is None:
        raise NoFacts
    return TokenFacts(
        id=token.id,
        secret_hash=bytes(token.secret_hash),
        expires_at=token.expires_at,
        revoked=token.revoked_at is not None,
        last_used_at=token.last_used_at,
        user_id=token.user_id,
        user_email=token.user.email,
        user_active=token.user.is_active,
        tenant_id=token.tenant_id,
    )


def _load_session(token_hash: bytes) -> SessionFacts:
    rows = UserSession.objects.using(_ALIAS).select_related("user")
    session = rows.filter(token_hash=token_hash).first()
    if session is None:
        raise NoFacts
    return SessionFacts(
        id=session.id,
        expires_at=session.expires_at,
        last_seen_at=session.last_seen_at,
        user_id=session.user_id,
        user_email=session.user.email,
        user_active=session.user.is_active,
    )


def _load_access(user_id: UUID, slug: str) -> MembershipFacts:
    rows = Membership.unscoped.using(_ALIAS).select_related("tenant__plan", "tenant__quota")
    membership = rows.filter(user_id=user_id, tenant__slug=slug).first()
    if membership is None:
        raise NoFacts
    return MembershipFacts(_tenant(membership.tenant), Role(membership.role))


def _load_tenant(slug: str) -> TenantFacts:
    tenant = Tenant.objects.using(_ALIAS).select_related("plan", "quota").filter(slug=slug).first()
    if tenant is None:
        raise NoFacts
    return _tenant(tenant)
