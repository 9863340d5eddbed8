"""After-images: what a committed transaction sends to the event layer.

The native code packs them, from what it wrote to the store, as the arguments of a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from documents.outbox.events import MAX_CALL_ENTRIES, PackedGroup
from foundation.valkey_functions import MAX_CALL_BYTES
from rillbase_native import Changes


@dataclass(frozen=True, slots=True)
class CommittedTransaction:
    """The writes of one committed transaction."""

    #: `pg_current_xact_id()` of the transaction.
    xid: int
    tenant_id: UUID
    changes: Changes
    #: For each collection, the version of the access rules that the transaction read.
    rules_versions: Sequence[int]
    #: Hashes of all keys that an atomic batch wrote, in all collections; None: no such batch.
    batch_hashes: Sequence[int] | None = None

    def groups(self) -> list[PackedGroup]:
        """Divide into groups that fit into a call. An atomic batch is not divided."""
        limits = (MAX_CALL_ENTRIES, MAX_CALL_BYTES) if self.batch_hashes is None else None
        parts = self.changes.after_images(
            self.xid, self.tenant_id.bytes, self.rules_versions, limits
        )
        return [PackedGroup(size, entries, self.batch_hashes) for size, entries in parts]
