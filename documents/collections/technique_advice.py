"""Which technique suits an index, by how it was used. Pure.

The first rule that applies names a technique; it is advised if it costs less than the current one
by a model of the work per operation. The times of the model were measured by
`benchmarks.secondary`, with tweets of 555 bytes; only their ratios matter here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self, cast

from documents.technique import DeclaredTechnique
from foundation.json_types import JsonValue

#: Fewer operations say nothing about an index.
MIN_OPERATIONS = 100
#: If the value of a document is expected in at most this share of the blocks, they find it.
MAX_BLOCK_SHARE = 0.01
#: Indexes that are used for fewer reads than this, of collections that are mostly written, should
#: cost writes little.
MIN_LOOKUP_SHARE, MAX_WRITE_SHARE = 0.05, 0.5
#: From this share on, lookups are mostly for the newest documents.
MIN_NEWEST_SHARE = 0.8

_WRITE_US = 4.0
#: What an index adds to a write.
_INDEX_WRITE_US = {
    DeclaredTechnique.COMPOSITE: 1.3,
    DeclaredTechnique.LAZY: 2.0,
    DeclaredTechnique.EAGER: 9.0,
    DeclaredTechnique.EMBEDDED: 0.5,
}
_READ_US = 3.0
#: To seek the first entry, and to read the document of each.
_SEEK_US, _DOCUMENT_US = 10.0, 2.5
#: To read the list of a value.
_LIST_US = 70.0
#: To compare a value with what tables record of a block, and to read a block that has it. The first
#: blocks cost more.
_TEST_US, _BLOCK_US, _FIRST_BLOCKS_US = 3.5, 24.0, 100.0
#: Documents of a lookup for the newest ones, and of one whose entries were not counted.
_NEWEST_DOCUMENTS, _ASSUMED_ENTRIES = 20, 100.0

#: The size of blocks in tables of the storage node, which reports shares in millionths.
_BLOCK_BYTES, _MILLION = 4096, 1_000_000


@dataclass(frozen=True, slots=True)
class IndexUse:
    """How an index was used in a period, and the collection as it is."""

    #: Queries, and documents by their keys.
    reads: int
    #: Documents.
    writes: int
    #: Queries whose filter restricts the index's first fields.
    lookups: int
    #: Those of them that need at most 100 documents, those first that were changed last.
    newest: int
    #: Queries with a sort whose order the index gives if it is composite.
    ordered: int
    #: The mean number of entries of a lookup; None: unknown.
    entries: float | None
    #: The share of the collection's blocks in which the value of a document may be; None: unknown.
    block_share: float | None
    documents: int
    blocks: int

    @classmethod
    def between(
        cls,
        previous: Mapping[str, JsonValue],
        present: Mapping[str, JsonValue],
        *,
        documents: int,
        document_bytes: int,
    ) -> Self:
        """Return the use between two readings of cumulative counters: those of a collection, and
        those of an index of it.
        """

        def growth(name: str) -> int:
            return max(_number(present, name) - _number(previous, name), 0)

        counted = growth("counted")
        share = present["block_share"]
        return cls(
            reads=growth("reads"),
            writes=growth("writes"),
            lookups=growth("lookups"),
            newest=growth("newest"),
            ordered=growth("ordered"),
            entries=growth("entries") / counted if counted else None,
            block_share=None if share is None else _number(present, "block_share") / _MILLION,
            documents=documents,
            blocks=document_bytes // _BLOCK_BYTES,
        )


class TechniqueAdvice(NamedTuple):
    """The advised technique, which may be the current one."""

    technique: DeclaredTechnique
    #: The cost of the operations with the current technique, divided by that with the advised one.
    gain: float


def advise(use: IndexUse, current: DeclaredTechnique) -> TechniqueAdvice | None:
    """Return the technique that suits an index that is not unique; None: it was used too little."""
    if use.writes + use.lookups + use.ordered < MIN_OPERATIONS:
        return None
    technique = _suitable(use)
    gain = _cost_us(use, current) / _cost_us(use, technique)
    return TechniqueAdvice(technique, gain) if gain > 1 else TechniqueAdvice(current, 1.0)


def _suitable(use: IndexUse) -> DeclaredTechnique:
    if use.ordered:
        return DeclaredTechnique.COMPOSITE
    if use.block_share is not None and use.block_share <= MAX_BLOCK_SHARE:
        return DeclaredTechnique.EMBEDDED
    is_written = use.writes > MAX_WRITE_SHARE * (use.reads + use.writes)
    if is_written and use.lookups < MIN_LOOKUP_SHARE * use.reads:
        return DeclaredTechnique.EMBEDDED
    if use.newest and use.newest >= MIN_NEWEST_SHARE * use.lookups:
        return DeclaredTechnique.LAZY
    return DeclaredTechnique.COMPOSITE


def _cost_us(use: IndexUse, technique: DeclaredTechnique) -> float:
    """Return the time of all operations."""
    others = max(use.reads - use.lookups - use.ordered, 0)
    return (
        use.writes * (_WRITE_US + _INDEX_WRITE_US[technique])
        + others * _READ_US
        + use.newest * _newest_us(use, technique)
        + (use.lookups - use.newest) * _lookup_us(use, technique)
        + use.ordered * _ordered_us(use, technique)
    )


def _newest_us(use: IndexUse, technique: DeclaredTechnique) -> float:
    entries = _entries(use)
    documents = min(_NEWEST_DOCUMENTS, entries)
    match technique:
        case DeclaredTechnique.LAZY:
            return _SEEK_US + documents * _DOCUMENT_US
        case DeclaredTechnique.EAGER:
            return _LIST_US + documents * _DOCUMENT_US
        case DeclaredTechnique.EMBEDDED:
            # Blocks are read in the order of time, until there are enough documents.
            return _FIRST_BLOCKS_US + _blocks_us(use) * documents / max(entries, 1.0)
        case _:
            # All documents of the value are read and sorted.
            return _lookup_us(use, technique)


def _lookup_us(use: IndexUse, technique: DeclaredTechnique) -> float:
    if technique is DeclaredTechnique.EMBEDDED:
        return _FIRST_BLOCKS_US + _blocks_us(use)
    return _SEEK_US + _entries(use) * _DOCUMENT_US


def _blocks_us(use: IndexUse) -> float:
    """Return the time to find all documents of a lookup by what tables record of blocks."""
    share = 1.0 if use.block_share is None else use.block_share
    tested = share * use.blocks
    return tested * _TEST_US + min(tested, _entries(use)) * _BLOCK_US


def _ordered_us(use: IndexUse, technique: DeclaredTechnique) -> float:
    """Return the time of a page: without an index in its order, all documents are sorted."""
    is_sorted = technique is DeclaredTechnique.COMPOSITE
    documents = min(_NEWEST_DOCUMENTS, use.documents) if is_sorted else use.documents
    return _SEEK_US + documents * _DOCUMENT_US


def _entries(use: IndexUse) -> float:
    return min(_ASSUMED_ENTRIES if use.entries is None else use.entries, use.documents)


def _number(counters: Mapping[str, JsonValue], name: str) -> int:
    return cast("int", counters.get(name, 0))
