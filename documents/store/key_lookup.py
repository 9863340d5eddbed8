"""The keys of unique indexes that other documents have, looked up once a group has violated one.

A caller who may not read such a document learns only that a rule rejects the write: for that caller
the document does not exist.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from documents.store import facts, statements
from documents.store.access import NOTHING, access_of
from documents.store.database import pool, scope
from documents.store.facts import CollectionFacts
from documents.store.write import WriteCall
from rillbase_native import Filter


class KeyAddress(NamedTuple):
    """The number of an index, and a key."""

    index_number: int
    key: bytes


class OwningDocument(NamedTuple):
    """A document, and the positions of the writes whose callers may not read it."""

    collection: bytes
    document: bytes
    hidden_from: list[int]


#: As the native code expects them: the names of the indexes, and the keys.
PlanKeys = tuple[dict[int, str], list[tuple[int, bytes, int, bytes, list[int]]]]


class KeyLookup:
    """The keys that other documents had while a group was attempted."""

    def __init__(self, tenant_id: UUID, writes: Sequence[WriteCall]) -> None:
        self._tenant_id = tenant_id
        self._writes = writes
        self._owners: dict[KeyAddress, OwningDocument] = {}

    async def add(self, places: Sequence[bytes]) -> None:
        """Add the other documents that have keys of the documents at these places."""
        rules = await self._read_rules()
        async with pool().session(self._tenant_id) as session:
            _, entries = await session.run(
                [scope(self._tenant_id), statements.conflicting_entries(places)]
            )
            for row in range(entries.rows):
                address = KeyAddress(entries.integer(row, 0), entries.bytes(row, 1))
                collection, document = entries.bytes(row, 2), entries.bytes(row, 3)
                filters = rules.get(collection)
                hidden_from: list[int] = []
                if filters:
                    # Read one at a time, because they may be large.
                    step = statements.body(collection, document)
                    _, result = await session.run([scope(self._tenant_id), step])
                    body, now_ms = result.raw(0, 0) if result.rows else None, time.time() * 1000
                    hidden_from = [
                        position
                        for position, readable in filters
                        if not (body and readable.matches(body, int(now_ms)))
                    ]
                self._owners[address] = OwningDocument(collection, document, hidden_from)

    async def _read_rules(self) -> dict[bytes, list[tuple[int, Filter]]]:
        """Return the read filters of the callers with access rules, by collection."""
        rules: dict[bytes, list[tuple[int, Filter]]] = {}
        for position, write in enumerate(self._writes):
            if write.principal is None or not write.principal.obeys_access_rules:
                continue
            for name in write.collections().values():
                collection = await facts.find(self._tenant_id, name)
                access = access_of(collection, write.principal)
                if access is not None:
                    readable = access.filters.get("read", NOTHING)
                    rules.setdefault(collection.raw, []).append((position, readable))
        return rules

    def of_plan(self, collections: Sequence[CollectionFacts], positions: Sequence[int]) -> PlanKeys:
        """Return them for a plan of these collections, whose writes have these positions."""
        names = {
            index.number: index.name
            for collection in collections
            for index in collection.indexes
            if index.unique
        }
        numbers = {collection.raw: number for number, collection in enumerate(collections)}
        return names, [
            (
                *address,
                numbers[owner.collection],
                owner.document,
                [n for n, position in enumerate(positions) if position in owner.hidden_from],
            )
            for address, owner in self._owners.items()
            if owner.collection in numbers
        ]
