"""How rows are read, in both backends."""

from __future__ import annotations

import json
from functools import partial

import pytest

from documents.backend import Backend
from documents.store import queries
from documents.store.sync import run
from rillbase_native import Filter, Value
from tests.documents.collection import CollectionClient, make_collection
from tests.documents.collections import stored_documents

#: More than what is counted of every index, and a collection of which this is a small part.
FEW, DOCUMENTS = 2_200, {Backend.POSTGRES: 12_000, Backend.NATIVE: 45_000}


async def index_of(shops: CollectionClient, condition: object) -> str | None:
    """Return the index by which all matches are read."""
    query_filter = Filter.parse(Value.parse(json.dumps(condition).encode()))
    place = (shops.account.tenant.id, shops.name)
    async with queries.opened(*place, query_filter, None) as reader:
        candidates = await reader.all_candidates()
    index = candidates.plan.index
    return None if index is None else index.name


@pytest.mark.parametrize("backend", list(Backend))
def test_all_matches_are_read_by_an_index_if_they_are_a_small_part(
    server: str, backend: Backend
) -> None:
    shops = make_collection(server, backend=backend, indexes=[("by-kind", [("kind", 1)], False)])
    kinds = ("few" if n < FEW else "many" for n in range(DOCUMENTS[backend]))
    documents = ({"_id": n, "kind": kind} for n, kind in enumerate(kinds))
    stored_documents.put(shops.account.tenant.id, shops.name, documents)
    by_kind = {
        kind: run(partial(index_of, shops, {"kind": kind})) for kind in ("few", "many", "none")
    }
    assert by_kind == {"few": "by-kind", "many": None, "none": "by-kind"}
    for kind, count in (("few", FEW), ("many", DOCUMENTS[backend] - FEW)):
        answer = shops.caller.post(f"{shops.path}/count", {"filter": {"kind": kind}})
        assert answer.json()["count"] == count
