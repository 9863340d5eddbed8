"""Those who read a whole collection get large bodies, too."""

from __future__ import annotations

from typing import Any

import pytest

from aggregates.following import backfill
from documents.store.bodies import ALWAYS_CARRIED
from rillbase_native import Value
from sources.following import documents
from tests.documents.collection import MadeCollection, make_collection

TEXTS = {1: "x" * 100_000, 2: "short", 3: "y" * 2 * ALWAYS_CARRIED, 4: "z" * 5_000_000}


@pytest.fixture
def made(server: str) -> MadeCollection:
    made = make_collection(server)
    made.insert_many([{"_id": number, "text": text} for number, text in TEXTS.items()])
    return made


def test_a_view_is_filled_with_large_documents(made: MadeCollection) -> None:
    found: dict[Any, Any] = {}
    for block in backfill.read(made.collection.id):
        for _, _, body in block:
            assert body is not None
            document = Value.from_bson(body)
            number, text = document.get("_id"), document.get("text")
            assert number is not None
            assert text is not None
            found[int(number.ejson())] = text.text()
    assert found == TEXTS


async def test_a_source_finds_the_ids_of_large_documents(made: MadeCollection) -> None:
    found = [
        identity
        async for page in documents.identities(made.made.tenant.id, made.name)
        for identity in page
    ]
    assert found == [{"$numberInt": str(number)} for number in TEXTS]
    bodies = await documents.read(made.made.tenant.id, made.name, map(str, TEXTS))
    assert all(len(body) > len(TEXTS[int(number)]) for number, body in bodies.items())
    assert len(bodies) == len(TEXTS)
