"""Pages as lines. Each page is read in a separate snapshot, so an export blocks nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

from documents.store import queries
from documents.store.queries import Bodies
from rillbase_native import Filter, Value
from tenants.principals import Principal

#: A page waits in memory for its reader, which may be slow.
PAGE, PAGE_BYTES = 500, 512 * 1024


async def first_page(
    tenant_id: UUID, name: str, query_filter: Filter, principal: Principal
) -> Bodies:
    """Read the first page, so that errors are reported before anything is sent."""
    return await _page(tenant_id, name, query_filter, principal, after=b"")


async def _page(
    tenant_id: UUID, name: str, query_filter: Filter, principal: Principal, *, after: bytes
) -> Bodies:
    return await queries.find(
        tenant_id,
        name,
        query_filter,
        principal,
        limit=PAGE,
        after=after,
        budget=queries.Budget.unlimited(PAGE_BYTES),
    )


async def rest(
    tenant_id: UUID,
    name: str,
    query_filter: Filter,
    principal: Principal,
    page: Bodies,
    *,
    canonical: bool,
) -> AsyncIterator[bytes]:
    """Yield the lines, page by page. A failure aborts the stream, so it never looks complete."""
    while True:
        lines = [Value.from_bson(body).ejson(canonical=canonical) for body in page.bodies]
        if lines:
            yield b"\n".join(lines) + b"\n"
        if page.last is None:
            return
        page = await _page(tenant_id, name, query_filter, principal, after=page.last)
