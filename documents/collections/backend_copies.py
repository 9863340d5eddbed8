"""What a move needs of the backend that a collection moves to."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from documents.models import Collection

#: How many documents, and about how many bytes of them, are copied in a step.
STEP_DOCUMENTS = 500
STEP_BYTES = 4 * 1024 * 1024


class MoveFailed(Exception):
    """A move cannot be completed; the text is the reason."""


class CopiedPart(NamedTuple):
    """Documents that were copied in the order of their keys."""

    documents: int
    #: The key after which the next part begins; None: there is none.
    after: bytes | None


class BackendCopies(Protocol):
    """Copies a collection to a backend. Each call is part of the transaction of its caller."""

    @property
    def must_seal(self) -> bool:
        """Whether writers to the former backend must be stopped before the last changes are copied,
        because they do not hold the collection's lock.
        """

    def clear(self) -> bool:
        """Remove what an earlier move has copied. Return whether nothing is left of it."""

    def count(self) -> int:
        """Return the number of documents to copy, as far as it is known."""

    def copy_next(self, after: bytes) -> CopiedPart:
        """Copy the documents that follow a key."""

    def copy_changed(self) -> int:
        """Copy documents that have changed since the move began. Return how many there were."""

    def check(self) -> None:
        """Raise `MoveFailed` if the backends have different numbers of documents."""

    def complete(self, collection: Collection) -> None:
        """Change the row of the collection, which is equal in both backends now."""

    def close_former_after_commit(self, collection: Collection) -> None:
        """Let the former backend reject calls that were made with an earlier definition."""
