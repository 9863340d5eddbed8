"""Pages as files. Each page is read in a separate snapshot, so an export blocks nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from uuid import UUID

from documents.store import queries
from documents.store.queries import Bodies
from documents.transfer.output import Output, OutputFormat, check_count
from foundation import bulk_budget
from foundation.event_loop_budget import EventLoopBudget
from foundation.per_loop import PerLoop
from foundation.turns import TurnScheduler
from rillbase_native import Filter, Value
from tenants.principals import Principal

#: A page waits in memory for its reader, which may be slow.
PAGE, PAGE_BYTES = 500, 512 * 1024
#: Pages that a process reads concurrently, in total and per tenant.
AT_ONCE, OF_ONE = 4, 2

_turns = PerLoop(lambda: TurnScheduler(AT_ONCE, OF_ONE, bulk_budget.tenants))


@dataclass(frozen=True, slots=True)
class MatchingDocuments:
    """The documents of a collection that match a filter and that the caller may read."""

    tenant_id: UUID
    name: str
    filter: Filter
    principal: Principal

    async def page(self, after: bytes = b"") -> Bodies:
        """Read a page, in turn."""
        async with _turns.get().turn(self.tenant_id):
            return await queries.find(
                self.tenant_id,
                self.name,
                self.filter,
                self.principal,
                limit=PAGE,
                after=after,
                budget=queries.Budget.unlimited(PAGE_BYTES),
            )

    async def pages(self, first: Bodies) -> AsyncGenerator[list[bytes], None]:
        """Yield the documents, page by page. A failure ends the stream early."""
        page = first
        while True:
            yield page.bodies
            if page.last is None:
                return
            page = await self.page(page.last)

    async def metered(self, parts: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        """Yield the parts of a file, and charge the work for them to the tenant."""

        async def following() -> bytes | None:
            return await anext(parts, None)

        async with aclosing(parts):
            work = bulk_budget.tenants.metered
            while (part := await work(self.tenant_id, following())) is not None:
                yield part


async def export(
    documents: MatchingDocuments, output: Output, *, canonical: bool
) -> AsyncIterator[bytes]:
    """Return the file's parts. Errors before the first part are reported as such; a later failure
    aborts the stream, so it never looks complete.
    """
    first = await bulk_budget.tenants.metered(documents.tenant_id, documents.page())
    pages = documents.pages(first)
    if output.format is OutputFormat.CSV:
        columns: Sequence[str] = output.fields or ()
        if not columns:
            names = _field_names(documents, first)
            columns = await bulk_budget.tenants.metered(documents.tenant_id, names)
        return documents.metered(_csv(pages, output, columns))
    if output.format is OutputFormat.JSON:
        return documents.metered(_array(pages, canonical=canonical))
    return documents.metered(_lines(pages, canonical=canonical))


async def _field_names(documents: MatchingDocuments, first: Bodies) -> list[str]:
    """Return the names of the fields of all documents, in the order of their first occurrence."""
    names: dict[str, None] = {}
    budget = EventLoopBudget()
    async for bodies in documents.pages(first):
        for body in bodies:
            names |= dict.fromkeys(Value.from_bson(body).names())
            await budget.yield_if_spent()
        check_count(list(names))
    return list(names) or ["_id"]


async def _csv(
    pages: AsyncIterator[list[bytes]], output: Output, columns: Sequence[str]
) -> AsyncGenerator[bytes, None]:
    writer = output.csv_writer(columns)
    yield writer.header()
    async for bodies in pages:
        if bodies:
            yield writer.rows(bodies)


async def _array(
    pages: AsyncIterator[list[bytes]], *, canonical: bool
) -> AsyncGenerator[bytes, None]:
    start = b"[\n"
    async for bodies in pages:
        if bodies:
            yield start + b",\n".join(_texts(bodies, canonical=canonical))
            start = b",\n"
    yield b"[]\n" if start == b"[\n" else b"\n]\n"


async def _lines(
    pages: AsyncIterator[list[bytes]], *, canonical: bool
) -> AsyncGenerator[bytes, None]:
    async for bodies in pages:
        if bodies:
            yield b"\n".join(_texts(bodies, canonical=canonical)) + b"\n"


def _texts(bodies: list[bytes], *, canonical: bool) -> list[bytes]:
    return [Value.from_bson(body).ejson(canonical=canonical) for body in bodies]
