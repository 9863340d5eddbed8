"""Roles of members, and the scopes that credentials carry."""

from __future__ import annotations

from enum import StrEnum

DATA_SCOPES = (
    "documents:read",
    "documents:write",
    "topics:read",
    "topics:write",
    "aggregates:read",
    "aggregates:write",
    "analytics:read",
    "analytics:write",
)
ADMIN_SCOPE = "admin"
#: Wildcards that a key may have; each stands for its read and write scope.
WILDCARD_SCOPES = ("topics:*", "aggregates:*", "analytics:*")
ALL_SCOPES = (*DATA_SCOPES, *WILDCARD_SCOPES, ADMIN_SCOPE)
#: All that end users and anonymous callers may have: only documents have access rules.
END_USER_SCOPES = frozenset({"documents:read", "documents:write"})
#: Keys may still contain these for one release; they grant nothing.
RETIRED_SCOPES = ("realtime",)

_READING = frozenset(s for s in DATA_SCOPES if not s.endswith(":write"))


class Role(StrEnum):
    """A member's role. Each includes the rights of those before it in `ORDER`."""

    VIEWER = "viewer"
    DEVELOPER = "developer"
    ADMIN = "admin"
    OWNER = "owner"

    @property
    def rank(self) -> int:
        return ORDER.index(self)

    def at_least(self, other: Role) -> bool:
        return self.rank >= other.rank

    @property
    def scopes(self) -> frozenset[str]:
        """Return the data-plane scopes of a member with this role."""
        if self is Role.VIEWER:
            return _READING
        if self is Role.DEVELOPER:
            return frozenset(DATA_SCOPES)
        return frozenset((*DATA_SCOPES, ADMIN_SCOPE))


ORDER = (Role.VIEWER, Role.DEVELOPER, Role.ADMIN, Role.OWNER)


def expand_scopes(scopes: list[str]) -> frozenset[str]:
    """Return the scopes of a key, with wildcards replaced and retired scopes removed."""
    expanded: set[str] = set()
    for scope in scopes:
        if scope.endswith(":*"):
            family = scope.removesuffix("*")
            expanded.update(s for s in DATA_SCOPES if s.startswith(family))
        elif scope not in RETIRED_SCOPES:
            expanded.add(scope)
    return frozenset(expanded)
