"""A collection's definition is read once for all concurrent callers."""

from __future__ import annotations

import asyncio

import pytest

from documents.models import Collection
from documents.store import database, facts
from documents.store.database import close_pool
from foundation.errors import NotFound
from foundation.postgres.pool import SessionPool
from foundation.scope import scoped
from tests.make import make_tenant

NAME = "things"


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[SessionPool]:
    """All sessions that were used for reading definitions of collections."""
    lent: list[SessionPool] = []

    def counted() -> SessionPool:
        lent.append(database.pool())
        return lent[-1]

    monkeypatch.setattr(facts, "pool", counted)
    return lent


def test_a_thousand_concurrent_callers_use_one_session(sessions: list[SessionPool]) -> None:
    tenant = make_tenant().tenant
    with scoped(tenant_id=tenant.id):
        collection = Collection.objects.create(name=NAME)

    async def ask() -> set[object]:
        results = await asyncio.gather(*(facts.find(tenant.id, NAME) for _ in range(1_000)))
        await close_pool()
        return {result.id for result in results}

    assert asyncio.run(ask()) == {collection.id}
    assert len(sessions) == 1


def test_each_caller_learns_that_the_collection_does_not_exist(sessions: list[SessionPool]) -> None:
    tenant = make_tenant().tenant

    async def ask() -> list[object]:
        lookups = (facts.find(tenant.id, NAME) for _ in range(3))
        results: list[object] = await asyncio.gather(*lookups, return_exceptions=True)
        await close_pool()
        return results

    assert [type(error) for error in asyncio.run(ask())] == [NotFound] * 3
    assert len(sessions) == 1
