"""The properties of a dataset that calls need."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from uuid import UUID

from analytics.locations import folder_of
from analytics.models import Dataset
from foundation.errors import Forbidden, NotFound
from foundation.names import NAME_PATTERN
from tenants.principals import Principal

if TYPE_CHECKING:
    from analytics.rows.file_store import StoredPath
    from analytics.schema import AnalyticsTable

READ, WRITE = "analytics:read", "analytics:write"
_NAME = re.compile(rf"{NAME_PATTERN}\Z")


@dataclass(frozen=True)
class DatasetFacts:
    """A dataset as the data plane needs it."""

    id: UUID
    tenant_id: UUID
    name: str
    definition: str
    #: The maximum size of its files, from the tenant's quota.
    max_bytes: int

    @property
    def folder(self) -> StoredPath:
        return folder_of(self.id)

    @cached_property
    def tables(self) -> Mapping[str, AnalyticsTable]:
        """All tables, including the internal ones of ID-keys."""
        # Imports columnar libraries, which only queries need.
        from analytics.schema import tables_of  # noqa: PLC0415

        return tables_of(self.definition)


def allow(principal: Principal, scope: str) -> None:
    """Raise unless the caller has the scope. End users never do: datasets have no access rules."""
    if principal.obeys_access_rules:
        raise Forbidden("Datasets are available to keys and members, not to end users.")
    principal.require_scope(scope)


def find(name: str) -> Dataset:
    """Return a dataset of the tenant in scope, or raise `NotFound`."""
    row = Dataset.objects.filter(name=name).first() if _NAME.match(name) else None
    if row is None:
        raise NotFound(f"The dataset {name[:100]!r} does not exist.")
    return row


def facts_of(row: Dataset, max_bytes: int) -> DatasetFacts:
    return DatasetFacts(row.pk, row.tenant_id, row.name, row.definition, max_bytes)
