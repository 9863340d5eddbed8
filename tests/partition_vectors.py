"""The test vectors of partitions, which the Rust tests also read."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

_FILE = Path(__file__).resolve().parents[1] / "native/live/tests/partitions.tsv"


class PartitionVector(NamedTuple):
    """A document's key or a query's hash, and its partition for a number of partitions."""

    name: bytes
    #: The hash of a document's key.
    hash: int
    partitions: int
    partition: int


def vectors(kind: str) -> list[PartitionVector]:
    """Return the vectors of documents or of queries."""
    rows = [line.split("\t") for line in _FILE.read_text().splitlines()[1:]]
    return [
        PartitionVector(bytes.fromhex(name), int(hashed or 0), int(partitions), int(partition))
        for row_kind, name, hashed, partitions, partition in rows
        if row_kind == kind
    ]
