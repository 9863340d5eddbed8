"""The authenticated caller of a request.

A principal is created by authentication and read-only from then on. `tenant_id` is the tenant whose
data plane or control plane the credentials open; it is None for a console user without a tenant in
the request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from uuid import UUID

from foundation.errors import Forbidden, MissingScope
from foundation.json_types import JsonValue
from tenants.roles import ADMIN_SCOPE, Role

_NO_CLAIMS: Mapping[str, JsonValue] = MappingProxyType({})


class PrincipalKind(StrEnum):
    """The kind of credential by which a caller authenticated."""

    SECRET_KEY = "secret_key"
    PUBLISHABLE_KEY = "publishable_key"
    END_USER = "end_user"
    SESSION = "session"
    PERSONAL_TOKEN = "personal_token"


KINDS = tuple(kind.value for kind in PrincipalKind)


@dataclass(frozen=True, slots=True)
class TokenReference:
    """What an end user's token was verified with, without the token."""

    #: The id of the issuer's registration. A changed registration has another.
    issuer: str
    #: The key of the issuer's key set, by its name and its digest; empty with a shared secret.
    key_id: str = ""
    key_digest: str = ""


@dataclass(frozen=True, slots=True)
class Principal:
    """The caller of one request."""

    kind: PrincipalKind
    #: Id of the key, the session or the token; for an end user, of the publishable key.
    credential_id: UUID
    user_id: UUID | None = None
    tenant_id: UUID | None = None
    tenant_slug: str = ""
    role: Role | None = None
    scopes: frozenset[str] = frozenset()
    #: Display name of the caller: an email address or a key's name.
    label: str = ""
    #: Names of the collections to which the credentials are restricted; None: all.
    collections: frozenset[str] | None = None
    #: Claims of an end user's token: `$auth` in access rules.
    claims: Mapping[str, JsonValue] = field(default_factory=lambda: _NO_CLAIMS)
    #: Of an end user's token.
    token: TokenReference | None = None
    #: The one tenant that a personal token is bound to.
    bound_tenant_id: UUID | None = None

    @property
    def actor(self) -> str:
        """Return the caller's stable name for logs, the audit log and idempotency."""
        if self.user_id is not None:
            return f"user:{self.user_id}"
        if self.kind is PrincipalKind.END_USER:
            return f"end_user:{self.claims.get('iss')}|{self.claims.get('sub')}"
        return f"api_key:{self.credential_id}"

    @property
    def obeys_access_rules(self) -> bool:
        """Return whether access rules apply to this caller: to end users and anonymous callers."""
        return self.kind in (PrincipalKind.END_USER, PrincipalKind.PUBLISHABLE_KEY)

    def require_scope(self, scope: str) -> None:
        """Raise `MissingScope` unless the credentials carry `scope`."""
        if scope not in self.scopes:
            raise MissingScope(f"This requires the scope {scope}.")

    def require_collection(self, name: str) -> None:
        """Raise `Forbidden` if the credentials exclude the collection."""
        if self.collections is not None and name not in self.collections:
            raise Forbidden(f"The key may not be used for the collection {name!r}.")

    def require_role(self, role: Role) -> None:
        """Raise `Forbidden` unless the caller may act as `role` in the tenant's control plane."""
        if self.control_role is None or not self.control_role.at_least(role):
            raise Forbidden(f"This requires the role {role} or a higher one.")

    @property
    def control_role(self) -> Role | None:
        """Return the role in the control plane; an `admin` key counts as an admin."""
        if self.role is not None:
            return self.role
        if self.kind is PrincipalKind.SECRET_KEY and ADMIN_SCOPE in self.scopes:
            return Role.ADMIN
        return None
