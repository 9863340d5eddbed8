"""After-images: what a committed transaction tells the event layer.

Built by the store after its commit, and by the relay from the rows of the outbox.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID


@dataclass(frozen=True, slots=True)
class AfterImage:
    """One document as a write left it. Exactly one of `body` and `deleted_id` is given."""

    key: bytes
    key_hash: int
    version: int
    #: BSON of the document; None: it was deleted.
    body: bytes | None
    #: BSON of the `_id` alone, for deletes.
    deleted_id: bytes | None
    #: When the document came into being, in milliseconds since 1970.
    created_ms: int


@dataclass(frozen=True, slots=True)
class CommittedWrites:
    """What one transaction wrote to one collection."""

    #: `pg_current_xact_id()` of the transaction.
    xid: int
    tenant_id: UUID
    collection_id: UUID
    #: The version of the access rules that the transaction read.
    rules_version: int
    #: When the transaction began, in milliseconds since 1970: what its documents were updated at.
    written_ms: int
    images: Sequence[AfterImage]
    #: Hashes of all keys that an atomic batch wrote, in whatever collection; None: no such batch.
    batch_hashes: Sequence[int] | None = None
