"""Bodies of documents, read so that a round trip carries a bounded number of bytes.

A document has up to 16 MiB, and a batch thousands of documents. A batch therefore carries only
bodies that are small enough for all of them to fit. For a larger body it contains only the size;
those bodies are read afterwards in the same snapshot, as many at a time as fit.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Final, NamedTuple

from foundation.postgres import Statement, StatementRunner
from foundation.postgres.arrays import byteas
from foundation.postgres.session import Oid, int4

#: The most bytes of bodies in one round trip, unless a single document is larger.
ROUND_TRIP_BYTES = 4 * 1024 * 1024
#: A body up to this size is always carried: reading it separately costs more.
ALWAYS_CARRIED = 2 * 1024
#: A size takes four bytes, and the shortest document has five.
_SIZE_BYTES: Final = 4

_BODIES = Statement(
    "SELECT key, body FROM documents_document WHERE collection_id = $1 AND key = ANY($2)",
    (Oid.UUID, Oid.BYTEA_ARRAY),
)

#: As the parameter of a statement: every body is included.
ANY_SIZE = int4(2**31 - 1)

#: A document's key, and its body or the size of its body.
Cell = tuple[bytes, bytes]


class BatchPart(NamedTuple):
    """Rows of a batch, and the keys of those whose bodies are omitted."""

    rows: slice
    omitted: list[bytes]


def carried(body: str, largest: str) -> str:
    """Return the SQL of a body that is included if it has at most this many bytes."""
    return (
        f"CASE WHEN octet_length({body}) <= {largest} THEN {body} "
        f"ELSE int4send(octet_length({body})) END"
    )


def largest_carried(rows: int) -> bytes:
    """Return the parameter for a round trip of up to this many rows."""
    return int4(max(ALWAYS_CARRIED, ROUND_TRIP_BYTES // max(1, rows)))


def omitted_size(cell: bytes) -> int:
    """Return the size of an omitted body; 0 for one that is included."""
    return int.from_bytes(cell, "big") if len(cell) == _SIZE_BYTES else 0


def size_bytes(cell: bytes) -> int:
    """Return the size of a body, included or not."""
    return omitted_size(cell) or len(cell)


async def read_omitted(
    session: StatementRunner, collection: bytes, cells: Sequence[Cell]
) -> AsyncIterator[tuple[slice, dict[bytes, bytes]]]:
    """Yield parts of a batch, in order, each with its omitted bodies by key.

    A document may occur several times.
    """
    for part in parts(cells):
        omitted = dict[bytes, bytes]()
        if part.omitted:
            (result,) = await session.run([(_BODIES, (collection, byteas(part.omitted)))])
            omitted = {result.bytes(row, 0): result.bytes(row, 1) for row in range(result.rows)}
        yield part.rows, omitted


def parts(cells: Sequence[Cell]) -> Iterator[BatchPart]:
    """Divide a batch into parts whose omitted bodies fit into one round trip, each once."""
    begin, omitted, omitted_bytes = 0, dict[bytes, None](), 0
    for number, (key, cell) in enumerate(cells):
        size = omitted_size(cell)
        if not size or key in omitted:
            continue
        if omitted and omitted_bytes + size > ROUND_TRIP_BYTES:
            yield BatchPart(slice(begin, number), list(omitted))
            begin, omitted, omitted_bytes = number, {}, 0
        omitted[key] = None
        omitted_bytes += size
    if begin < len(cells):
        yield BatchPart(slice(begin, len(cells)), list(omitted))
