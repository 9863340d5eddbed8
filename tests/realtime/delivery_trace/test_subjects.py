"""The grid that a hypothetical subscription of a collection would use."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from documents.backend import Backend
from documents.store import facts
from documents.store.facts import CollectionFacts
from realtime.delivery_trace import subjects
from realtime.grid.layout import GridEpoch, ServingGrids
from realtime.registration import subscribe_request
from rillbase_native import Definition, Value

TENANT, COLLECTION = uuid4(), uuid4()
DEDICATED = GridEpoch(1, 7, 1)
SHARED = {
    Backend.POSTGRES: [GridEpoch(1, 1, 2)],
    Backend.NATIVE: [GridEpoch(1, 5, 1, backend=Backend.NATIVE)],
}


@pytest.mark.parametrize(
    ("backend", "own", "expected"),
    [
        (Backend.POSTGRES, {}, SHARED[Backend.POSTGRES][0]),
        (Backend.POSTGRES, {TENANT: [DEDICATED]}, DEDICATED),
        (Backend.NATIVE, {}, SHARED[Backend.NATIVE][0]),
        (Backend.NATIVE, {TENANT: [DEDICATED]}, SHARED[Backend.NATIVE][0]),
    ],
)
async def test_native_collections_use_the_shared_grid(
    monkeypatch: pytest.MonkeyPatch,
    backend: Backend,
    own: dict[UUID, list[GridEpoch]],
    expected: GridEpoch,
) -> None:
    collection = CollectionFacts(
        id=COLLECTION,
        raw=COLLECTION.bytes,
        tenant_id=TENANT,
        name="todos",
        write_version=1,
        rules_version=1,
        version_floor=0,
        definition=Definition(None, []),
        rules={},
        indexes=(),
        source_id=None,
        schema=None,
        backend=backend,
    )

    async def find(tenant_id: UUID, name: str) -> CollectionFacts:
        return collection

    async def read_served() -> ServingGrids:
        return ServingGrids(SHARED, own)

    monkeypatch.setattr(facts, "find", find)
    monkeypatch.setattr(subjects, "read_served", read_served)
    request = subscribe_request.read(Value.parse(b'{"collection": "todos"}'))
    subject = await subjects.of_query(TENANT, request, None, is_ruled=False)
    assert subject.grid == expected
