"""Authentication: from a request's headers to a principal.

Callers of the data plane identify their tenant by their key or, as members, by `Rillbase-Tenant`.
The same functions serve REST, GraphQL and, with headers from the first message, WebSocket.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from types import MappingProxyType

from django.utils import timezone

from foundation.errors import (
    AddressNotAllowed,
    CredentialsExpired,
    InvalidCredentials,
    InvalidParameter,
    NotFound,
    TenantDeleted,
    TenantSuspended,
    Unauthenticated,
)
from foundation.json_types import JsonValue
from foundation.request_context import RequestHead, client_address
from tenants import keys
from tenants.credentials import facts, last_used, sessions
from tenants.credentials.jwt import verify_end_user
from tenants.models import ApiKey, Tenant
from tenants.principals import Principal, PrincipalKind, TokenReference

KEY_HEADER = "Rillbase-Key"
TENANT_HEADER = "Rillbase-Tenant"
_BEARER = "bearer "


def authenticate(request: RequestHead) -> Principal | None:
    """Return the caller, or None without credentials; raise if they are not valid."""
    bearer = _bearer(request)
    publishable = request.headers.get(KEY_HEADER)
    if publishable is not None:
        return _publishable(publishable, bearer)
    if bearer is not None:
        return _bearer_principal(bearer)
    cookie = request.COOKIES.get(sessions.cookie_name())
    return _session(request, cookie) if cookie else None


def require(request: RequestHead) -> Principal:
    """Return the caller, or raise `Unauthenticated`."""
    principal = authenticate(request)
    if principal is None:
        raise Unauthenticated(
            "Send an API key or a personal token as `Authorization: Bearer …`, or sign in.",
            headers={"WWW-Authenticate": "Bearer"},
        )
    return principal


def _bearer(request: RequestHead) -> str | None:
    header = request.headers.get("Authorization")
    if header is None:
        return None
    if not header[: len(_BEARER)].lower() == _BEARER or not header[len(_BEARER) :].strip():
        raise InvalidCredentials("The Authorization header must have the form `Bearer <key>`.")
    return header[len(_BEARER) :].strip()


def _bearer_principal(bearer: str) -> Principal:
    if bearer.startswith("rbt_"):
        return _personal_token(keys.parse(bearer))
    if bearer.startswith("rbp_"):
        raise InvalidCredentials(f"Send a publishable key in the header {KEY_HEADER}.")
    if bearer.count(".") == 2:  # noqa: PLR2004 -- a JWT has three parts
        raise InvalidCredentials(
            f"An end user's token requires a publishable key in the header {KEY_HEADER}."
        )
    return _secret_key(keys.parse(bearer))


def _secret_key(key: keys.ParsedKey) -> Principal:
    return key_principal(_checked_key(key, ApiKey.Kind.SECRET), PrincipalKind.SECRET_KEY)


def _publishable(text: str, bearer: str | None) -> Principal:
    if not text.startswith("rbp_"):
        raise InvalidCredentials(
            f"{KEY_HEADER} takes a publishable key (rbp_…); send secret keys in Authorization."
        )
    key_facts = _checked_key(keys.parse(text), ApiKey.Kind.PUBLISHABLE)
    if bearer is None:
        return key_principal(key_facts, PrincipalKind.PUBLISHABLE_KEY)
    token = verify_end_user(key_facts.tenant, bearer)
    return key_principal(key_facts, PrincipalKind.END_USER, token.claims, token.reference)


def key_principal(
    known: facts.KeyFacts,
    kind: PrincipalKind,
    claims: Mapping[str, JsonValue] = MappingProxyType({}),
    token: TokenReference | None = None,
) -> Principal:
    """Return the principal of a key, with an end user's claims if there are any."""
    return Principal(
        kind=kind,
        credential_id=known.id,
        tenant_id=known.tenant.id,
        tenant_slug=known.tenant.slug,
        scopes=known.scopes,
        collections=known.collections,
        label=str(claims.get("sub", known.name)),
        claims=claims,
        token=token,
    )


def _checked_key(key: keys.ParsedKey, kind: ApiKey.Kind) -> facts.KeyFacts:
    try:
        key_facts = facts.key_facts(key.key_id)
    except facts.NoFacts:
        raise InvalidCredentials("The key does not exist.") from None
    if key_facts.kind != kind or not keys.matches(key.text, key_facts.secret_hash):
        raise InvalidCredentials("The key does not exist.")
    refuse_unusable_key(key_facts)
    last_used.note_key(key_facts.id, key_facts.last_used_at)
    return key_facts


def refuse_unusable_key(known: facts.KeyFacts) -> None:
    """Raise unless the tenant is active and the key may be used from the caller's address."""
    if known.revoked:
        raise InvalidCredentials("The key has been revoked.")
    _check_expiry(known.expires_at, "key")
    _check_address(known.allowed_networks)
    refuse_inactive(known.tenant)


def _personal_token(key: keys.ParsedKey) -> Principal:
    try:
        token = facts.token_facts(key.key_id)
    except facts.NoFacts:
        raise InvalidCredentials("The token does not exist.") from None
    if not keys.matches(key.text, token.secret_hash):
        raise InvalidCredentials("The token does not exist.")
    last_used.note_token(token.id, token.last_used_at)
    return token_principal(token)


def token_principal(token: facts.TokenFacts) -> Principal:
    """Return the principal of a personal token, or raise why it is not valid."""
    if token.revoked or not token.user_active:
        raise InvalidCredentials("The token has been revoked.")
    _check_expiry(token.expires_at, "token")
    return Principal(
        kind=PrincipalKind.PERSONAL_TOKEN,
        credential_id=token.id,
        user_id=token.user_id,
        label=token.user_email,
        bound_tenant_id=token.tenant_id,
    )


def _session(request: RequestHead, cookie: str) -> Principal:
    try:
        session = facts.session_facts(keys.stored_hash(cookie))
    except facts.NoFacts:
        raise InvalidCredentials("The session has ended. Sign in again.") from None
    principal = session_principal(session)
    sessions.check_csrf(request, cookie)
    last_used.note_session(session.id, session.last_seen_at)
    return principal


def session_principal(session: facts.SessionFacts) -> Principal:
    """Return the principal of a console session, or raise that it has ended."""
    if session.expires_at <= timezone.now() or not session.user_active:
        raise CredentialsExpired("The session has ended. Sign in again.")
    return Principal(
        kind=PrincipalKind.SESSION,
        credential_id=session.id,
        user_id=session.user_id,
        label=session.user_email,
    )


def _check_expiry(expires_at: datetime.datetime | None, what: str) -> None:
    if expires_at is not None and expires_at <= timezone.now():
        raise CredentialsExpired(f"The {what} expired at {expires_at.isoformat()}.")


def _check_address(allowed_networks: tuple[str, ...]) -> None:
    if not allowed_networks:
        return
    text = client_address.get()
    try:
        address = ip_address(text)
    except ValueError:
        raise AddressNotAllowed from None
    mapped = getattr(address, "ipv4_mapped", None) or address
    if not any(mapped in ip_network(network) for network in allowed_networks):
        raise AddressNotAllowed(f"The key may not be used from {text}.")


def refuse_inactive(tenant: facts.TenantFacts) -> None:
    """Raise unless the tenant is active."""
    if tenant.state == Tenant.State.SUSPENDED:
        raise TenantSuspended
    if tenant.state == Tenant.State.DELETING:
        raise TenantDeleted


def enter_tenant(principal: Principal, slug: str) -> tuple[Principal, facts.TenantFacts]:
    """Return the principal with its role in a tenant, or raise `NotFound`.

    Only members may learn that a tenant exists, so a tenant without the caller as a member and one
    that does not exist look alike.
    """
    try:
        return _enter(principal, slug)
    except facts.NoFacts:
        raise NotFound("The tenant does not exist, or you are not a member of it.") from None


def _enter(principal: Principal, slug: str) -> tuple[Principal, facts.TenantFacts]:
    if principal.user_id is None:
        if principal.tenant_slug != slug:
            raise facts.NoFacts
        return principal, facts.tenant_facts(slug)
    access = facts.access_facts(principal.user_id, slug)
    if principal.bound_tenant_id not in (None, access.tenant.id):
        raise facts.NoFacts
    entered = Principal(
        kind=principal.kind,
        credential_id=principal.credential_id,
        user_id=principal.user_id,
        tenant_id=access.tenant.id,
        tenant_slug=slug,
        role=access.role,
        scopes=access.role.scopes,
        label=principal.label,
        bound_tenant_id=principal.bound_tenant_id,
    )
    return entered, access.tenant


def authenticate_data_plane(request: RequestHead) -> tuple[Principal, facts.TenantFacts]:
    """Return the principal and the tenant of a data-plane request."""
    return enter_data_plane(require(request), request)


def enter_data_plane(
    principal: Principal, request: RequestHead
) -> tuple[Principal, facts.TenantFacts]:
    """Return an authenticated caller as a principal of the data plane, and its tenant."""
    if principal.user_id is None:
        return enter_tenant(principal, principal.tenant_slug)
    slug = request.headers.get(TENANT_HEADER)
    if not slug:
        raise InvalidParameter(
            f"Name the tenant in the header {TENANT_HEADER}: a member may belong to several."
        )
    return enter_as_member(principal, slug)


def enter_as_member(principal: Principal, slug: str) -> tuple[Principal, facts.TenantFacts]:
    """Return a member as a principal of the data plane of an active tenant."""
    entered, tenant = enter_tenant(principal, slug)
    refuse_inactive(tenant)
    return entered, tenant
