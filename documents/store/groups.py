"""Answers queries that group: one row for all documents with the same values."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from uuid import UUID

from documents.store.large_results import ReadAllowance, in_turn, rendered
from documents.store.notices import Notices
from documents.store.queries import (
    DEFAULT_LIMIT,
    Budget,
    feed,
    native,
    notices_of,
    opened,
)
from rillbase_native import Filter, Group, Grouping, Sort
from tenants.principals import Principal

#: Maximum number of documents that a query or a live query groups.
MAX_GROUPED = 100_000


@dataclass(frozen=True, slots=True)
class GroupQuery:
    """A query with groups."""

    filter: Filter
    group: Group
    #: None: ordered by the values of the grouping fields.
    sort: Sort | None = None
    offset: int = 0
    limit: int = DEFAULT_LIMIT


@dataclass(frozen=True, slots=True)
class GroupedResult:
    """The result of a query with groups."""

    tenant_id: UUID
    grouping: Grouping
    query: GroupQuery
    notices: Notices

    async def rows(self, *, canonical: bool) -> bytes:
        """Return the rows as JSON."""
        query = self.query
        render = partial(
            self.grouping.render,
            query.sort,
            offset=query.offset,
            limit=query.limit,
            canonical=canonical,
        )
        return await rendered(
            self.tenant_id, partial(native, render), size=self.grouping.held_bytes
        )


async def group(
    tenant_id: UUID, name: str, query: GroupQuery, principal: Principal | None
) -> GroupedResult:
    """Group the matching documents that the caller may read."""
    grouping = await in_turn(tenant_id, partial(_group, tenant_id, name, query, principal))
    return GroupedResult(tenant_id, grouping, query, notices_of(grouping, tenant_id, name))


async def _group(
    tenant_id: UUID,
    name: str,
    query: GroupQuery,
    principal: Principal | None,
    allowance: ReadAllowance,
) -> Grouping:
    async with opened(
        tenant_id, name, query.filter, principal, allowance=allowance, is_fixed=False
    ) as reader:
        grouping = Grouping(
            reader.filter,
            query.group,
            now_ms=reader.now_ms,
            most=MAX_GROUPED,
            readable=reader.readable,
        )
        await feed(reader, grouping, await reader.all_candidates(), Budget())
    return grouping
