"""How the writes of transactions become calls of the event layer's function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from documents.outbox.entries import Image, Kind, encode_image
from documents.outbox.events import Group
from documents.outbox.images import AfterImage, CommittedWrites

#: A call carries no more than this, unless one atomic batch or one document is larger.
CALL_BYTES = 1024 * 1024
#: The fixed part of an entry, and what the function's arguments take, roughly.
_ENTRY_BYTES = 128


@dataclass(frozen=True, slots=True)
class Part:
    """Images of one collection that fit into a call."""

    writes: CommittedWrites
    images: Sequence[AfterImage]
    size_bytes: int


def size_bytes(image: AfterImage) -> int:
    """Return about how much of a call an image takes."""
    return _ENTRY_BYTES + len(image.key) + len(image.body or image.deleted_id or b"")


def calls(transaction: Sequence[CommittedWrites]) -> Iterator[list[Part]]:
    """Cut a transaction into parts for one call each. An atomic batch stays whole."""
    if transaction and transaction[0].batch_hashes is not None:
        yield [_whole(writes) for writes in transaction]
        return
    for writes in transaction:
        for part in _cut(writes):
            yield [part]


def _whole(writes: CommittedWrites) -> Part:
    return Part(writes, writes.images, sum(map(size_bytes, writes.images)))


def _cut(writes: CommittedWrites) -> Iterator[Part]:
    begin, taken = 0, 0
    for end, image in enumerate(writes.images):
        size = size_bytes(image)
        if taken and taken + size > CALL_BYTES:
            yield Part(writes, writes.images[begin:end], taken)
            begin, taken = end, 0
        taken += size
    if taken:
        yield Part(writes, writes.images[begin:], taken)


def group(parts: Sequence[Part]) -> Group:
    """Encode parts of one transaction that are appended together."""
    return Group(
        [(image.key_hash, _encode(part.writes, image)) for part in parts for image in part.images],
        parts[0].writes.batch_hashes,
    )


def _encode(writes: CommittedWrites, image: AfterImage) -> bytes:
    deleted = image.body is None
    return encode_image(
        Image(
            kind=Kind.DELETE if deleted else Kind.PUT,
            xid=writes.xid,
            tenant_id=writes.tenant_id,
            collection_id=writes.collection_id,
            version=image.version,
            rules_version=writes.rules_version,
            created_ms=image.created_ms,
            written_us=writes.written_ms * 1000,
            key=image.key,
            body=(image.deleted_id if deleted else image.body) or b"",
        )
    )
