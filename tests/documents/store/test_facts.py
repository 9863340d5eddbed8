"""What a collection prescribes is read once for all who ask at the same time."""

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
    """Every session that is lent for reading what collections prescribe."""
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
        found = await asyncio.gather(*(facts.find(tenant.id, NAME) for _ in range(1_000)))
        await close_pool()
        return {each.id for each in found}

    assert asyncio.run(ask()) == {collection.id}
    assert len(sessions) == 1


def test_each_caller_learns_that_the_collection_does_not_exist(sessions: list[SessionPool]) -> None:
    tenant = make_tenant().tenant

    async def ask() -> list[object]:
        asked = (facts.find(tenant.id, NAME) for _ in range(3))
        found: list[object] = await asyncio.gather(*asked, return_exceptions=True)
        await close_pool()
        return found

    assert [type(each) for each in asyncio.run(ask())] == [NotFound] * 3
    assert len(sessions) == 1
