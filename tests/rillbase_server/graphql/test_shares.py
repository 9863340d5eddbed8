"""Long operations take part in their tenant's share of bulk work."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import pytest

from foundation import bulk_budget
from rillbase_server.graphql import context
from rillbase_server.graphql.context import FREE_CALLS, FREE_S
from tests.documents.collection import CollectionClient, make_collection
from tests.rillbase_server.graphql.graphql_caller import GraphqlCaller

#: Documents of a page, of which an operation reads several.
PAGE, PAGES = 200, 8


class RecordedShares:
    """What the tenants' bulk work is charged for, and when it would wait."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.charged_s = 0.0
        self.waits = 0
        charge, wait = bulk_budget.tenants.charge, bulk_budget.tenants.wait

        def recorded_charge(tenant: Hashable, spent_s: float) -> None:
            self.charged_s += spent_s
            charge(tenant, spent_s)

        async def recorded_wait(tenant: Hashable, *, is_last: bool = False) -> None:
            self.waits += 1
            await wait(tenant, is_last=is_last)

        patch.setattr(bulk_budget.tenants, "charge", recorded_charge)
        patch.setattr(bulk_budget.tenants, "wait", recorded_wait)


@pytest.fixture
def notes(server: str) -> CollectionClient:
    return make_collection(server)


def run(notes: CollectionClient, query: str) -> None:
    """Run an operation that succeeds."""
    body = GraphqlCaller(notes.caller).send(query, variables={"c": notes.name}).json()
    assert "errors" not in body


@pytest.fixture
def shares(notes: CollectionClient, monkeypatch: pytest.MonkeyPatch) -> Iterator[RecordedShares]:
    """Record after the documents were written."""
    notes.insert_many([{"_id": n, "text": "x" * 100} for n in range(PAGE)])
    with monkeypatch.context() as patch:
        yield RecordedShares(patch)


def _pages(number: int, first: int) -> str:
    fields = "nodes { key version document }"
    pages = (
        f"a{n}: documents(collection: $c, first: {first}) {{ {fields} }}" for n in range(number)
    )
    return f"query ($c: String!) {{ {' '.join(pages)} }}"


def test_a_long_operation_is_charged_and_waits_for_its_share(
    notes: CollectionClient, shares: RecordedShares
) -> None:
    query = _pages(PAGES, PAGE)
    run(notes, query)
    checked_s, shares.charged_s, shares.waits = shares.charged_s, 0.0, 0
    # The text has been checked before, so only its fields are charged.
    run(notes, query)
    assert checked_s > 0
    assert shares.charged_s > FREE_S
    assert shares.waits >= PAGES - FREE_CALLS


def test_a_small_operation_does_not_wait_for_its_share(
    notes: CollectionClient,
    shares: RecordedShares,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Its CPU time differs between machines.
    monkeypatch.setattr(context, "FREE_S", 1.0)
    query = _pages(1, 1)
    run(notes, query)
    shares.waits = 0
    run(notes, query)
    assert shares.waits == 0


def test_a_large_page_waits_before_its_fields_are_completed(
    notes: CollectionClient, shares: RecordedShares
) -> None:
    notes.insert({"_id": "large", "text": "x" * 200_000})
    page = 'documents(collection: $c, filter: {_id: "large"}) { nodes { key } }'
    query = f"query ($c: String!) {{ {page} }}"
    run(notes, query)
    shares.waits = 0
    run(notes, query)
    # Its response waits before it is rendered as in the REST API, and again after it.
    assert shares.waits >= 2
