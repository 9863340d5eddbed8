"""Readers of a whole collection receive large bodies, too."""

from __future__ import annotations

from typing import Any

import pytest

from aggregates.following import backfill
from documents.backend import Backend
from documents.store.bodies import ALWAYS_CARRIED
from rillbase_native import Value
from sources.following import documents
from tests.documents.collection import CollectionClient, make_collection

TEXTS = {1: "x" * 100_000, 2: "short", 3: "y" * 2 * ALWAYS_CARRIED, 4: "z" * 5_000_000}


def with_large_documents(server: str, backend: Backend) -> CollectionClient:
    collection = make_collection(server, backend=backend)
    collection.insert_many([{"_id": number, "text": text} for number, text in TEXTS.items()])
    return collection


@pytest.mark.parametrize("backend", [*Backend], ids=str)
def test_a_view_is_filled_with_large_documents(server: str, backend: Backend) -> None:
    collection = with_large_documents(server, backend)
    items: dict[Any, Any] = {}
    for block in backfill.read(backend, collection.account.tenant.id, collection.collection.id):
        for _, _, body in block.documents:
            assert body is not None
            document = Value.from_bson(body)
            number, text = document.get("_id"), document.get("text")
            assert number is not None
            assert text is not None
            items[int(number.ejson())] = text.text()
    assert items == TEXTS


@pytest.fixture
def collection(server: str) -> CollectionClient:
    return with_large_documents(server, Backend.POSTGRES)


async def test_a_source_finds_the_ids_of_large_documents(collection: CollectionClient) -> None:
    items = [
        identity
        async for page in documents.identities(collection.account.tenant.id, collection.name)
        for identity in page
    ]
    assert items == [{"$numberInt": str(number)} for number in TEXTS]
    bodies = await documents.read(collection.account.tenant.id, collection.name, map(str, TEXTS))
    assert all(len(body) > len(TEXTS[int(number)]) for number, body in bodies.items())
    assert len(bodies) == len(TEXTS)
