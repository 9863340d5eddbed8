"""A document as it is stored."""

from __future__ import annotations

from dataclasses import dataclass

from documents.store import bodies


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document with its current version."""

    key: bytes
    version: int
    created_ms: int
    updated_ms: int
    #: In the rows of `documents.store.reads.BY_KEY`, the size of an omitted body.
    body: bytes

    @property
    def is_omitted(self) -> bool:
        """Whether the body is still to be read."""
        return bodies.omitted_size(self.body) > 0
