"""A tenant's exports read their pages in turn."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from documents.store import queries
from documents.store.notices import Notices
from documents.store.queries import Bodies
from documents.transfer.exporting import OF_ONE, MatchingDocuments
from rillbase_native import Filter

pytestmark = pytest.mark.backend("postgres")


def test_few_pages_of_one_tenant_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    reading: list[int] = []
    counts: list[int] = []

    async def find(*_: object, **__: object) -> Bodies:
        reading.append(1)
        counts.append(len(reading))
        await asyncio.sleep(0)
        reading.pop()
        return Bodies([], None, Notices())

    monkeypatch.setattr(queries, "find", find)
    documents = MatchingDocuments(uuid4(), "notes", Filter.parse(None), None)  # type: ignore[arg-type]

    async def export_all() -> None:
        await asyncio.gather(*(documents.page() for _ in range(12)))

    asyncio.run(export_all())
    assert len(counts) == 12
    # Beside the tenants of other tests, it is one.
    assert max(counts) <= OF_ONE
