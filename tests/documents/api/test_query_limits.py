"""A query that takes too long, or examines too many documents, is rejected."""

from __future__ import annotations

import pytest

from documents.store import queries
from foundation.errors import QueryTooExpensive
from tests.caller import problem
from tests.documents.collection import make_collection


def test_a_slow_query_is_rejected(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    collection = make_collection(server)
    collection.insert({"n": 1})
    assert len(collection.query(filter={"n": 1})) == 1
    monkeypatch.setattr(queries, "MAX_SECONDS", -1.0)
    answer = collection.caller.post(f"{collection.path}/query", {"filter": {"n": 1}})
    error = problem(answer, 422, "query_too_expensive")
    assert "s without completing" in error["detail"]


def test_the_budget_is_exhausted_by_examined_documents() -> None:
    budget = queries.Budget(examined=10)
    budget.spend(10)
    with pytest.raises(QueryTooExpensive):
        budget.spend(1)
