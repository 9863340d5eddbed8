"""End users' tokens: JWTs of issuers that the tenant has registered.

Issuer, audience and algorithms are pinned by the registration; nothing in the token decides how it
is verified. Keys come from a shared secret or from a JWKS document, fetched by the guarded outbound
client and cached for a few minutes; an unknown key id triggers a new fetch, at most twice a minute.
"""

from __future__ import annotations

import time
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

import jwt

from foundation.errors import CredentialsExpired, InvalidCredentials, MalformedJson
from foundation.json_body import parse_json_body
from foundation.json_types import JsonValue
from foundation.sealing import unseal
from tenants.credentials.cache import ShortCache
from tenants.credentials.changes import CredentialChanges
from tenants.credentials.facts import TenantFacts
from tenants.credentials.key_sets import find_key, is_withdrawn
from tenants.models import Issuer
from tenants.principals import TokenReference

ASYMMETRIC = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "EdDSA")
SYMMETRIC = ("HS256", "HS384", "HS512")
SEAL_PURPOSE = "issuer-secret"
MAX_TOKEN_CHARS = 16_384


@dataclass(frozen=True, slots=True)
class IssuerFacts:
    """The fields of a registered issuer needed for verification."""

    id: UUID
    issuer: str
    audience: str
    algorithms: tuple[str, ...]
    jwks_url: str
    sealed_secret: bytes
    leeway_s: int
    max_token_age_s: int


_issuers: ShortCache[tuple[IssuerFacts, ...]] = ShortCache()


@dataclass(frozen=True, slots=True)
class EndUserToken:
    """A verified token."""

    claims: Mapping[str, JsonValue]
    reference: TokenReference


def verify_end_user(tenant: TenantFacts, token: str) -> EndUserToken:
    """Return the content of a valid token, or raise why it is invalid."""
    if len(token) > MAX_TOKEN_CHARS:
        raise InvalidCredentials("The token is too long.")
    issuer = _issuer_of(tenant, token)
    key, reference = _key_for(tenant, issuer, token)
    try:
        jwt.decode(
            token,
            key=key,
            algorithms=list(issuer.algorithms),
            audience=issuer.audience,
            issuer=issuer.issuer,
            leeway=issuer.leeway_s,
            options={"require": ["exp", "iss", "aud", "sub"]},
        )
    except jwt.ExpiredSignatureError:
        raise CredentialsExpired("The token has expired.") from None
    except (jwt.PyJWTError, ValueError) as error:
        raise InvalidCredentials(f"The token is not valid: {error}.") from None
    claims = _claims(token)
    _refuse_old(issuer, claims)
    expiry, latest = claims.get("exp"), time.time() + issuer.max_token_age_s + issuer.leeway_s
    if "iat" not in claims and isinstance(expiry, int | float) and expiry > latest:
        raise InvalidCredentials(
            f"A token without `iat` may be valid for {issuer.max_token_age_s} s at most "
            "(max_token_age_s of the issuer)."
        )
    return EndUserToken(claims, reference)


def refuse_untrusted(
    tenant: TenantFacts, reference: TokenReference, claims: Mapping[str, JsonValue]
) -> None:
    """Raise if a token that was valid would be rejected now: its issuer was removed or replaced,
    its key withdrawn, or it is too old.
    """
    registered = {str(issuer.id): issuer for issuer in _issuers_of(tenant)}
    issuer = registered.get(reference.issuer)
    if issuer is None:
        raise InvalidCredentials("The token's issuer is no longer registered for this tenant.")
    url, key_id, digest = issuer.jwks_url, reference.key_id, reference.key_digest
    if url and is_withdrawn(tenant.id, url, key_id, digest):
        raise InvalidCredentials("The token's key is no longer in the issuer's key set.")
    _refuse_old(issuer, claims)


def _refuse_old(issuer: IssuerFacts, claims: Mapping[str, JsonValue]) -> None:
    """Raise if a token was issued too long ago."""
    issued_at, allowed_s = claims.get("iat"), issuer.max_token_age_s + issuer.leeway_s
    if isinstance(issued_at, int | float) and issued_at + allowed_s <= time.time():
        raise CredentialsExpired(
            f"The token was issued more than {issuer.max_token_age_s} s ago (max_token_age_s of "
            "the issuer)."
        )


def evict(changes: CredentialChanges) -> None:
    """Evict the issuers that other processes have changed."""
    for tenant_id in changes.tenants:
        _issuers.forget(tenant_id)


def _claims(token: str) -> Mapping[str, JsonValue]:
    """Parse the claims of a verified token as strictly as any body: they are `$auth` in rules.

    The library's parser accepts NaN, unpaired surrogates and duplicate names; none of those can be
    displayed, stored or compared.
    """
    payload = token.split(".")[1]
    try:
        claims = parse_json_body(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except MalformedJson as error:
        raise InvalidCredentials(f"The token's claims are not valid. {error.detail}") from None
    if not isinstance(claims, dict):
        raise InvalidCredentials("The token's claims are not a JSON object.")
    return claims


def _issuer_of(tenant: TenantFacts, token: str) -> IssuerFacts:
    """Find the registration that the token's unverified `iss` and `aud` point to."""
    try:
        unverified = jwt.decode(token, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError):
        raise InvalidCredentials("The token is not a JWT.") from None
    audience = unverified.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    for issuer in _issuers_of(tenant):
        if issuer.issuer == unverified.get("iss") and issuer.audience in audiences:
            return issuer
    raise InvalidCredentials("The token's issuer and audience are not registered for this tenant.")


def _issuers_of(tenant: TenantFacts) -> tuple[IssuerFacts, ...]:
    return _issuers.get_or_load(tenant.id, lambda: _load_issuers(tenant.id))


def _load_issuers(tenant_id: UUID) -> tuple[IssuerFacts, ...]:
    rows = Issuer.unscoped.using("auth").filter(tenant_id=tenant_id).order_by("id")
    return tuple(
        IssuerFacts(
            id=row.id,
            issuer=row.issuer,
            audience=row.audience,
            algorithms=tuple(row.algorithms),
            jwks_url=row.jwks_url,
            sealed_secret=bytes(row.sealed_secret),
            leeway_s=row.leeway_s,
            max_token_age_s=row.max_token_age_s,
        )
        for row in rows
    )


def _key_for(
    tenant: TenantFacts, issuer: IssuerFacts, token: str
) -> tuple[jwt.PyJWK | bytes, TokenReference]:
    """Return the key for a token, and the reference by which both are checked again."""
    if not issuer.jwks_url:
        secret = unseal(issuer.sealed_secret, purpose=SEAL_PURPOSE, owner=str(issuer.id))
        return secret, TokenReference(str(issuer.id))
    key_id = str(jwt.get_unverified_header(token).get("kid", ""))
    issuer_key = find_key(tenant.id, issuer.jwks_url, key_id)
    return issuer_key.key, TokenReference(str(issuer.id), key_id, issuer_key.digest)
