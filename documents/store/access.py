"""The access of a caller according to a collection's access rules.

Rules bind end users and anonymous callers; keys and members obey their scopes. An absent rule is
false. Claims are inserted as literals, so no claim can become an operator.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

from documents.store.facts import ACTIONS, CollectionFacts
from foundation.errors import Forbidden
from foundation.json_types import JsonValue
from rillbase_native import Filter, Value
from tenants.principals import Principal

#: The filter for a caller that may read nothing of a collection.
NOTHING = Filter.parse(Value.parse(b'{"_id":{"$in":[]}}'))


READ_ONLY = "The collection's documents come from a source. Change the rows of its table."
#: The filters of read, create, update and delete.
Rules = tuple[Filter | None, Filter | None, Filter | None, Filter | None]


@dataclass(frozen=True, slots=True)
class CallerAccess:
    """The rules with this caller's claims. An action that is missing is denied."""

    filters: Mapping[str, Filter]

    def require(self, action: str) -> Filter:
        """Return the filter that documents must match, or raise `Forbidden`."""
        rule = self.filters.get(action)
        if rule is None:
            raise Forbidden(f"The collection's access rules do not let you {action} here.")
        return rule


def access_of(collection: CollectionFacts, principal: Principal) -> CallerAccess | None:
    """Return what the rules allow; None: no rule binds this caller."""
    if not principal.obeys_access_rules:
        return None
    return bind(collection, principal.claims or None)


def bind(collection: CollectionFacts, claims: Mapping[str, JsonValue] | None) -> CallerAccess:
    """Insert claims into the rules. If a claim is missing, its rule is false."""
    text = None if claims is None else json.dumps(dict(claims)).encode()
    filters = {}
    for action in ACTIONS:
        rule = collection.rules.get(action)
        bound = rule.bind(text) if rule is not None else None
        if bound is not None:
            filters[action] = bound
    return CallerAccess(filters)


def write_rules(collection: CollectionFacts, principal: Principal | None) -> Rules | None:
    """Return the filters that a write obeys; None: access rules do not apply to this caller."""
    access = None if principal is None else access_of(collection, principal)
    if access is None:
        return None
    allowed = access.filters.get
    return allowed("read"), allowed("create"), allowed("update"), allowed("delete")


def may_write(collections: Iterable[CollectionFacts], source_id: UUID | None) -> bool:
    """Return whether each collection allows this writer: its source, or callers without one."""
    return all(collection.source_id == source_id for collection in collections)
