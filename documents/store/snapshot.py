"""What reading a collection requires of the place where its documents are stored.

All reads of a snapshot see one state. There is one implementation for each backend:
`documents.store.postgres_snapshot` and `documents.store.node.snapshot`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from documents.outbox.entries import TransactionSnapshot
from documents.store.cursors import CursorPosition
from documents.store.facts import CollectionFacts
from documents.store.planner import CandidatePlan
from documents.store.scan import LARGEST_BATCH, Row
from documents.store.stored_document import StoredDocument
from rillbase_native import Filter, Sort


@dataclass(frozen=True, slots=True)
class CandidateQuery:
    """Which documents are needed."""

    filter: Filter
    sort: Sort
    #: How many that match.
    rows: int
    #: The time of the filter.
    now_ms: int
    #: False: the order of an index turned out to differ from the sort's.
    in_order: bool = True
    #: All matches are read, in any order.
    needs_all: bool = False
    #: The last row of the previous page.
    after: CursorPosition | None = None
    #: Rows of the first batch, where those of several queries share a round trip.
    first_batch: int = LARGEST_BATCH
    #: Nothing is read unless the batches are iterated.
    only_plan: bool = False


class CandidateBatch(NamedTuple):
    """Rows that may match, and how many were examined for them."""

    rows: list[Row]
    examined: int


@dataclass(frozen=True, slots=True)
class PlannedCandidates:
    """How candidates are read, and the candidates."""

    plan: CandidatePlan
    batches: AsyncIterator[CandidateBatch]


@dataclass(frozen=True, slots=True)
class DocumentVersion:
    """A document as a snapshot has it, deletions included."""

    key: bytes
    #: 0 if it never existed, or its tombstone was removed.
    version: int
    #: The transaction that wrote it; 0: no longer known.
    xid: int
    #: None: it does not exist.
    body: bytes | None


class DocumentSnapshot(Protocol):
    """One state of the collections of a backend."""

    async def candidates(
        self, collection: CollectionFacts, request: CandidateQuery
    ) -> PlannedCandidates:
        """Choose a plan. The caller stops iterating when its result is complete."""

    async def has_more_than(self, collection: CollectionFacts, documents: int) -> bool:
        """Return whether a collection has more documents, without counting them all."""

    async def count_all(self, collection: CollectionFacts) -> int:
        """Return the number of documents."""

    async def are_current(self, collections: Sequence[CollectionFacts]) -> bool:
        """Return whether the collections are unchanged in the snapshot."""

    def documents(
        self,
        collection: CollectionFacts,
        keys: Sequence[bytes],
        reserve: Callable[[int], None],
    ) -> AsyncIterator[list[StoredDocument]]:
        """Yield the documents that exist. `reserve` is called with the bytes of all of them before
        they are all in memory, and raises if those are too many.
        """

    async def transactions(self) -> TransactionSnapshot:
        """Return which transactions the snapshot sees."""

    def versions(
        self, collection: CollectionFacts, keys: Sequence[bytes]
    ) -> AsyncIterator[list[DocumentVersion]]:
        """Yield the versions of documents in the order of the keys, in parts whose bodies fit
        together.
        """

    async def all_documents(
        self, collection: CollectionFacts, *, max_documents: int, max_bytes: int
    ) -> list[StoredDocument] | None:
        """Return all documents of a collection; None if there are more of them."""
