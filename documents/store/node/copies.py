"""Copies of native collections at one snapshot, read as the storage node's administrator: it may
read the documents of all tenants.

Rows have the form of PostgreSQL's binary copy, without its header and trailer: the collection's id,
key, version, times of creation and change, and body. Deleted documents are omitted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct
from typing import Any, NamedTuple, cast
from uuid import UUID

from foundation.valkey_sockets import ValkeySockets
from storage_engine.node.admin import administrator_connection

#: A row: the number of its columns, and the length before each. The columns of fixed size are the
#: collection's id, the version and two times.
_COLUMNS, _LENGTH, _ID, _NUMBER = 2, 4, 16, 8
_KEY_START = _COLUMNS + _LENGTH + _ID
_NUMBERS_AND_LENGTH = Struct(f">{_LENGTH}xq{_LENGTH}xq{_LENGTH}xqI")
_EPOCH_2000_MS = 946_684_800_000

#: A document's key, version, times of creation and change in milliseconds, and BSON.
CopiedDocument = tuple[bytes, int, int, int, bytes]


class CopiedBlock(NamedTuple):
    """Whole rows, and the key after which the next ones begin; None: there are none."""

    rows: bytes
    after: bytes | None


class CopySnapshot:
    """A snapshot of all native collections."""

    def __init__(self, node: ValkeySockets, name: bytes, position: int) -> None:
        self._node = node
        self._name = name
        #: The position of the log up to which it contains all writes.
        self.position = position

    def rows(
        self, tenant_id: UUID, collection_id: UUID, partition: int = 0, partitions: int = 1
    ) -> Iterator[bytes]:
        """Yield blocks of whole rows, some of which may be empty: the documents whose key's hash
        belongs to the partition. A collection that the node does not have has no rows.
        """
        block = CopiedBlock(b"", b"")
        while block.after is not None:
            block = self.block(tenant_id, collection_id, partition, partitions, after=block.after)
            yield block.rows

    def block(
        self,
        tenant_id: UUID,
        collection_id: UUID,
        partition: int = 0,
        partitions: int = 1,
        *,
        after: bytes,
    ) -> CopiedBlock:
        """Return the rows of a partition that follow a key."""
        words = (str(tenant_id), str(collection_id), partition, partitions, "AT", self._name)
        reply = self._node.call("RB.COL.COPY", *words, *(("AFTER", after) if after else ()))
        # A map, as the names and members of a list.
        _, _, _, _, _, rows, _, following = cast("tuple[Any, ...]", reply)
        return CopiedBlock(rows, following)


@contextmanager
def copy_snapshot() -> Iterator[CopySnapshot]:
    """Open a snapshot. It expires a minute after its last use if the block fails."""
    with administrator_connection() as node:
        name, position = cast("tuple[bytes, int]", node.call("RB.SNAPSHOT.OPEN", "SEQUENCE"))
        yield CopySnapshot(node, name, position)
        node.call("RB.SNAPSHOT.CLOSE", name)


def documents_of(rows: bytes) -> Iterator[CopiedDocument]:
    """Yield the documents of a block of rows."""
    start = 0
    while start < len(rows):
        key_start = start + _KEY_START + _LENGTH
        key_end = key_start + int.from_bytes(rows[key_start - _LENGTH : key_start], "big")
        version, created_us, updated_us, size = _NUMBERS_AND_LENGTH.unpack_from(rows, key_end)
        body_start = key_end + _NUMBERS_AND_LENGTH.size
        start = body_start + size
        times_ms = (us // 1000 + _EPOCH_2000_MS for us in (created_us, updated_us))
        yield rows[key_start:key_end], version, *times_ms, rows[body_start:start]
