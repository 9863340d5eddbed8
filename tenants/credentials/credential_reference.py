"""Re-checks credentials that were accepted once, for connections that stay open.

A connection cannot keep the secret that opened it: it keeps a `CredentialReference`, which names
the credential without containing it. `resolve_reference` looks the credential up again and returns
the caller's current principal, so a revoked key, a lost membership, changed scopes and a deleted
tenant take effect. An end user's token was verified when the connection was opened: its expiry is
among its claims, and the reference names the issuer and the key, which may be withdrawn.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from foundation.errors import CredentialsExpired, InvalidCredentials
from foundation.json_types import JsonValue
from foundation.request_context import RequestHead, client_address
from tenants import keys
from tenants.credentials import act_as, authenticate, facts, sessions
from tenants.credentials.authenticate import KEY_HEADER
from tenants.credentials.facts import TenantFacts
from tenants.credentials.jwt import refuse_untrusted
from tenants.credentials.origins import foreign_origin, require_listed
from tenants.principals import Principal, PrincipalKind, TokenReference

_NO_CLAIMS: Mapping[str, JsonValue] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class CredentialReference:
    """Names a credential and the address that uses it, without containing the secret."""

    kind: PrincipalKind
    #: The public id of a key or personal token; the keyed hash of a session's cookie, as hex.
    reference: str
    tenant_slug: str
    address: str
    #: Whether the holder is an admin acting as the end user with these claims.
    impersonates: bool = False
    #: Of an end user: what the token was verified with.
    token: TokenReference | None = None
    #: The origin of the page that uses the credential, which the tenant must list; empty: a
    #: program, or a page of this server.
    origin: str = ""


def reference_of(principal: Principal, head: RequestHead) -> CredentialReference:
    """Return the credential reference of a caller just authenticated by this request."""
    impersonates = act_as.is_requested(head)
    kind = _credential_of(head) if impersonates else principal.kind
    return CredentialReference(
        kind,
        _reference(kind, head),
        principal.tenant_slug,
        client_address.get(),
        impersonates,
        principal.token,
        foreign_origin(head) or "",
    )


def _credential_of(head: RequestHead) -> PrincipalKind:
    """Return the kind of credential of an admin who acts as an end user."""
    bearer = head.headers.get("Authorization")
    if bearer is None:
        return PrincipalKind.SESSION
    is_token = keys.parse(_token(bearer)).prefix is keys.Prefix.PERSONAL
    return PrincipalKind.PERSONAL_TOKEN if is_token else PrincipalKind.SECRET_KEY


def _reference(kind: PrincipalKind, head: RequestHead) -> str:
    match kind:
        case PrincipalKind.SESSION:
            return keys.stored_hash(head.COOKIES[sessions.cookie_name()]).hex()
        case PrincipalKind.PUBLISHABLE_KEY | PrincipalKind.END_USER:
            return keys.parse(head.headers[KEY_HEADER]).key_id
        case PrincipalKind.SECRET_KEY | PrincipalKind.PERSONAL_TOKEN:
            return keys.parse(_token(head.headers["Authorization"])).key_id


def _token(authorization: str) -> str:
    return authorization.partition(" ")[2].strip()


def resolve_reference(
    reference: CredentialReference, claims: Mapping[str, JsonValue] = _NO_CLAIMS
) -> tuple[Principal, TenantFacts]:
    """Return the caller's current principal and tenant, or raise why access has ended."""
    token = client_address.set(reference.address)
    try:
        principal, tenant = _resolve(reference, _NO_CLAIMS if reference.impersonates else claims)
    except facts.NoFacts:
        raise InvalidCredentials("The credentials no longer exist.") from None
    finally:
        client_address.reset(token)
    if reference.origin:
        require_listed(reference.origin, tenant)
    return act_as.impersonated(principal, claims) if reference.impersonates else principal, tenant


def _resolve(
    reference: CredentialReference, claims: Mapping[str, JsonValue]
) -> tuple[Principal, TenantFacts]:
    match reference.kind:
        case PrincipalKind.PERSONAL_TOKEN:
            member = authenticate.token_principal(facts.token_facts(reference.reference))
            return authenticate.enter_as_member(member, reference.tenant_slug)
        case PrincipalKind.SESSION:
            session = facts.session_facts(bytes.fromhex(reference.reference))
            member = authenticate.session_principal(session)
            return authenticate.enter_as_member(member, reference.tenant_slug)
        case _:
            key_facts = facts.key_facts(reference.reference)
            authenticate.refuse_unusable_key(key_facts)
            refuse_expired(claims)
            if reference.token is not None:
                refuse_untrusted(key_facts.tenant, reference.token, claims)
            principal = authenticate.key_principal(
                key_facts, reference.kind, claims, reference.token
            )
            return principal, key_facts.tenant


def refuse_expired(claims: Mapping[str, JsonValue]) -> None:
    """Raise if an end user's token has expired."""
    expiry = claims.get("exp")
    if isinstance(expiry, int | float) and expiry <= time.time():
        raise CredentialsExpired("The token has expired.")


def preload_keys(references: Iterable[CredentialReference]) -> None:
    """Read the keys among the references into the cache, by one query."""
    facts.read_keys(
        {
            reference.reference
            for reference in references
            if reference.kind
            in (PrincipalKind.SECRET_KEY, PrincipalKind.PUBLISHABLE_KEY, PrincipalKind.END_USER)
        }
    )
