"""The address of the storage node, and the credentials of a tenant's namespace in it.

A namespace is named by its tenant's id. Its token is derived from the administrator's, so nothing
is stored and every process knows it. A process that finds a namespace missing creates it.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import SplitResult, unquote, urlsplit
from uuid import UUID

from foundation.environment import environment
from foundation.errors import Unavailable
from foundation.resp_pipeline import Argument

#: The node's reply if a namespace is missing; unauthenticated clients learn no more.
NO_NAMESPACE = frozenset({"WRONGPASS", "NO_NAMESPACE"})


@dataclass(frozen=True, slots=True)
class NodeCredentials:
    """The node, as its administrator."""

    parts: SplitResult
    token: str

    def administrator(self) -> tuple[tuple[Argument, ...], ...]:
        """Return the first commands of the administrator's connection."""
        return (("HELLO", 3, "AUTH", "admin", self.token),)

    def tenant(self, tenant_id: UUID) -> tuple[tuple[Argument, ...], ...]:
        """Return the first commands of a tenant's connection."""
        name = str(tenant_id)
        return (
            ("HELLO", 3, "AUTH", name, self.token_of(name)),
            ("RB.FORMAT", "bson"),
        )

    def namespace_creation(self, tenant_id: UUID) -> tuple[Argument, ...]:
        """Return the command that creates a tenant's namespace."""
        name = str(tenant_id)
        return ("RB.NAMESPACE.CREATE", name, self.token_of(name))

    def token_of(self, namespace: str) -> str:
        return hmac.new(self.token.encode(), f"namespace:{namespace}".encode(), sha256).hexdigest()


def access() -> NodeCredentials:
    """Return the credentials for the node, or raise if this installation has none."""
    url = environment().storage_url
    if not url:
        raise Unavailable("This installation has no storage node.")
    parts = urlsplit(url)
    return NodeCredentials(parts, unquote(parts.password or ""))
