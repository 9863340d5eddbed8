"""Reads sorted files side by side in little memory.

The files' indexes contain the first key of each row group. Blocks end at keys at which enough rows
have accumulated; a block holds the rows of all files between two such keys, so all rows of one key
are in one block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from analytics.rows.keys import Key
from analytics.rows.sorted_file import SortedFile

BLOCK_BYTES = 48 * 1024 * 1024


def blocks(
    files: Sequence[SortedFile], low: Key | None = None, high: Key | None = None
) -> Iterator[list[pa.Table]]:
    """Yield for each range of keys, in order, the rows of each file, between `low` and `high`."""
    begin = low
    for end in [*_ends(files, low, high), high]:
        yield [file.read(begin, end) for file in files]
        begin = end


def _ends(files: Sequence[SortedFile], low: Key | None, high: Key | None) -> list[Key]:
    """Return the keys at which blocks end, except the last."""
    groups = sorted(
        (start, file.group_bytes(number))
        for file in files
        for number, start in enumerate(file.starts)
        if (high is None or start < high)
    )
    ends: list[Key] = []
    size = 0
    for start, group_bytes in groups:
        if size >= BLOCK_BYTES and (low is None or start > low):
            if not ends or start > ends[-1]:
                ends.append(start)
            size = 0
        size += group_bytes
    return ends
