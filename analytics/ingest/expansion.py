"""Splits batches into pieces that stay small when their dictionaries are expanded.

Rows of a dictionary-encoded column are indexes into it, and those of a view column point into
shared buffers: a few bytes can stand for gigabytes. The expanded size is known before anything is
expanded, so a batch is split where its rows would be too large.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

#: A piece has at most this many bytes, unless a single row has more.
PIECE_BYTES = 32 * 1024 * 1024
#: The width of the widest numbers.
_VALUE_BYTES = 8
#: A view is four words: a length, a prefix, a buffer number and an offset.
_VIEW_WORDS = 4


def small_batches(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a batch in order."""
    if batch.num_rows == 0:
        return
    ends = np.cumsum(_row_bytes(batch))
    begin = 0
    while begin < batch.num_rows:
        before = ends[begin - 1] if begin else 0
        end = int(np.searchsorted(ends, before + PIECE_BYTES, side="right"))
        end = max(end, begin + 1)
        yield batch.slice(begin, end - begin)
        begin = end


def _row_bytes(batch: pa.RecordBatch) -> NDArray[np.int64]:
    """Return the approximate size of each row in plain columns."""
    total = np.zeros(batch.num_rows, dtype=np.int64)
    for column in batch.columns:
        total += _value_bytes(column)
    return total


def _value_bytes(column: pa.Array) -> NDArray[np.int64]:
    kind = column.type
    if pa.types.is_struct(kind):
        parts = [_value_bytes(part) for part in column.flatten()]
        return np.sum(parts, axis=0, dtype=np.int64) if parts else _constant(column)
    if pa.types.is_dictionary(kind):
        indices = pc.fill_null(column.indices, 0).to_numpy(zero_copy_only=False)
        values = _value_bytes(column.dictionary)
        if len(values) == 0:
            return _constant(column)
        picked: NDArray[np.int64] = values[indices]
        return picked
    if pa.types.is_string_view(kind):
        words = np.frombuffer(column.buffers()[1], dtype=np.int32)
        lengths = words[::_VIEW_WORDS][column.offset : column.offset + len(column)]
        sizes: NDArray[np.int64] = lengths.astype(np.int64) + _VALUE_BYTES
        return sizes
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        lengths = pc.fill_null(pc.binary_length(column), 0).to_numpy(zero_copy_only=False)
        texts: NDArray[np.int64] = lengths.astype(np.int64) + _VALUE_BYTES
        return texts
    return _constant(column)


def _constant(column: pa.Array) -> NDArray[np.int64]:
    return np.full(len(column), _VALUE_BYTES, dtype=np.int64)
