"""End users' tokens: JWTs of issuers that the tenant has registered.

Issuer, audience and algorithms are pinned by the registration; nothing in the token decides how it
is verified. Keys come from a shared secret or from a JWKS document, fetched by the guarded outbound
client and cached for a few minutes; an unknown key id triggers a new fetch, at most twice a minute.
"""

from __future__ import annotations

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
from tenants.credentials.facts import TenantFacts
from tenants.credentials.key_sets import find_key
from tenants.models import Issuer

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


_issuers: ShortCache[tuple[IssuerFacts, ...]] = ShortCache()


def verify_end_user(tenant: TenantFacts, token: str) -> Mapping[str, JsonValue]:
    """Return the claims of a valid token, or raise why it is invalid."""
    if len(token) > MAX_TOKEN_CHARS:
        raise InvalidCredentials("The token is too long.")
    issuer = _issuer_of(tenant, token)
    try:
        jwt.decode(
            token,
            key=_key_for(tenant, issuer, token),
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
    return _claims(token)


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
    for issuer in _issuers.get_or_load(tenant.id, lambda: _load_issuers(tenant.id)):
        if issuer.issuer == unverified.get("iss") and issuer.audience in audiences:
            return issuer
    raise InvalidCredentials("The token's issuer and audience are not registered for this tenant.")


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
        )
        for row in rows
    )


def _key_for(tenant: TenantFacts, issuer: IssuerFacts, token: str) -> jwt.PyJWK | bytes:
    if not issuer.jwks_url:
        return unseal(issuer.sealed_secret, purpose=SEAL_PURPOSE, owner=str(issuer.id))
    key_id = str(jwt.get_unverified_header(token).get("kid", ""))
    return find_key(tenant.id, issuer.jwks_url, key_id)
