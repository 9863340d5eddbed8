"""The bytes of one stream entry. docs/formats/after-image.md is their specification.

An entry is an after-image (`put`, `delete`, `superseded`) or a `tick`. Numbers are big-endian.
What is fixed in size comes first, so that a reader finds everything without scanning.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from struct import Struct
from uuid import UUID

FORMAT = 1


class StreamEntryKind(IntEnum):
    PUT = 1
    DELETE = 2
    #: A newer version already exists; this one only counts as a part of its batch.
    SUPERSEDED = 3
    TICK = 4


class MalformedEntry(ValueError):
    """The bytes are not an entry of this format."""


@dataclass(frozen=True, slots=True)
class Image:
    """One version of one document."""

    kind: StreamEntryKind
    xid: int
    tenant_id: UUID
    collection_id: UUID
    version: int
    rules_version: int
    #: When the document was created, in milliseconds since 1970.
    created_ms: int
    #: When it was written, in microseconds since 1970. Both times are those that reads return, to
    #: the millisecond: sorts may use them. Versions, not times, order the writes of a document.
    written_us: int
    key: bytes
    #: BSON: the document, for deletes its `_id` alone, for superseded ones nothing.
    body: bytes


@dataclass(frozen=True, slots=True)
class TransactionSnapshot:
    """PostgreSQL's `pg_snapshot`: transactions below `xmin` have ended, those from `xmax` on are
    not visible, and those between are visible unless `running` has them.
    """

    xmin: int
    xmax: int
    running: tuple[int, ...]

    @classmethod
    def parse(cls, text: str) -> TransactionSnapshot:
        """Read PostgreSQL's own form, `xmin:xmax:xip,…`."""
        xmin, xmax, running = text.split(":")
        return cls(int(xmin), int(xmax), tuple(int(xid) for xid in running.split(",") if xid))

    def __str__(self) -> str:
        return f"{self.xmin}:{self.xmax}:{','.join(map(str, self.running))}"

    @classmethod
    def up_to(cls, position: int) -> TransactionSnapshot:
        """Return what is visible at a position of the storage node's log. The id of a transaction
        is the position of its first write.
        """
        return cls(position + 1, position + 1, ())

    def sees(self, xid: int) -> bool:
        """Return whether a transaction that has committed is visible."""
        return xid < self.xmin or (xid < self.xmax and xid not in self.running)


@dataclass(frozen=True, slots=True)
class Tick:
    """Proof that the stream contains everything that the snapshot sees."""

    token: int
    #: Identifies the incarnations of Valkey and PostgreSQL in which the stream is complete.
    incarnation: bytes
    snapshot: TransactionSnapshot
    #: Valkey's time when it was appended; written by the function.
    time_us: int
    #: Number of entries appended to the stream, including this one; written by the function.
    count: int


_HEAD = Struct(">BB")
_IMAGE = Struct(">Q16s16sQQqqHI")
_STAMPS = Struct(">QQ")
_TICK = Struct(">Q16sQQI")
INCARNATION_BYTES = 16


def encode_image(image: Image) -> bytes:
    return b"".join(
        (
            _HEAD.pack(FORMAT, image.kind),
            _IMAGE.pack(
                image.xid,
                image.tenant_id.bytes,
                image.collection_id.bytes,
                image.version,
                image.rules_version,
                image.created_ms,
                image.written_us,
                len(image.key),
                len(image.body),
            ),
            image.key,
            image.body,
        )
    )


def encode_tick_body(token: int, incarnation: bytes, snapshot: TransactionSnapshot) -> bytes:
    """Return a tick without its head, time and count, which the function prepends."""
    running = snapshot.running
    return _TICK.pack(token, incarnation, snapshot.xmin, snapshot.xmax, len(running)) + b"".join(
        xid.to_bytes(8, "big") for xid in running
    )


def decode(raw: bytes) -> Image | Tick:
    """Parse an entry; raise `MalformedEntry` if it is not valid."""
    if len(raw) < _HEAD.size or raw[0] != FORMAT:
        raise MalformedEntry("not an entry of this format")
    if raw[1] == StreamEntryKind.TICK:
        return _decode_tick(raw)
    if raw[1] not in (StreamEntryKind.PUT, StreamEntryKind.DELETE, StreamEntryKind.SUPERSEDED):
        raise MalformedEntry(f"unknown kind {raw[1]}")
    return _decode_image(raw)


def _decode_image(raw: bytes) -> Image:
    start = _HEAD.size + _IMAGE.size
    if len(raw) < start:
        raise MalformedEntry("an after-image is truncated")
    xid, tenant, collection, version, rules, created_ms, written_us, key_length, body_length = (
        _IMAGE.unpack_from(raw, _HEAD.size)
    )
    if len(raw) != start + key_length + body_length:
        raise MalformedEntry("the length of an after-image does not match its header")
    return Image(
        kind=StreamEntryKind(raw[1]),
        xid=xid,
        tenant_id=UUID(bytes=tenant),
        collection_id=UUID(bytes=collection),
        version=version,
        rules_version=rules,
        created_ms=created_ms,
        written_us=written_us,
        key=raw[start : start + key_length],
        body=raw[start + key_length :],
    )


def _decode_tick(raw: bytes) -> Tick:
    start = _HEAD.size + _STAMPS.size
    if len(raw) < start + _TICK.size:
        raise MalformedEntry("a tick is truncated")
    time_us, count = _STAMPS.unpack_from(raw, _HEAD.size)
    token, incarnation, xmin, xmax, running = _TICK.unpack_from(raw, start)
    xids = raw[start + _TICK.size :]
    if len(xids) != 8 * running:
        raise MalformedEntry("the length of a tick does not match its header")
    return Tick(
        token=token,
        incarnation=incarnation,
        snapshot=TransactionSnapshot(xmin, xmax, Struct(f">{running}Q").unpack(xids)),
        time_us=time_us,
        count=count,
    )
