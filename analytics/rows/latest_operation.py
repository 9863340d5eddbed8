"""Merges many operations on a key into one, without a Python step per row.

Rows are in upload order. A stable sort by key makes the operations on one key adjacent, the latest
last. A column has the value of the last operation that sets it, unless a later one clears the row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from analytics.schema import CLEARS, GONE, OP

Positions = NDArray[np.int64]
#: Types whose values compare like the numbers they are stored as.
_BITS = {
    pa.int32(): pa.int32(),
    pa.int64(): pa.int64(),
    pa.date32(): pa.int32(),
    pa.timestamp("us", "UTC"): pa.int64(),
}


def latest(rows: pa.Table, key: Sequence[str], bits: Mapping[str, int]) -> pa.Table:
    """Return one operation for each key, sorted by key. `bits` has the mask's bit of each column.

    `rows` holds the key, the columns that are wanted, and the masks.
    """
    if rows.num_rows == 0:
        return rows
    rows = by_key(rows, key)
    starts = _starts(rows, key)
    if len(starts) == rows.num_rows:
        return rows
    masks = rows[OP].to_numpy()
    lasts = np.append(starts[1:], rows.num_rows) - 1
    if np.all(masks[lasts] & CLEARS):
        # All last operations clear the row, so earlier ones have no effect.
        return rows.take(pa.array(lasts))
    return _fold(rows, starts, lasts, {n: bits[n] for n in rows.column_names if n in bits})


def by_key(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Sort rows by key. Rows of one key keep their order."""
    rows = rows.combine_chunks()
    numbers = _numbers(rows, key)
    if numbers is None:
        order = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in key])
        return rows.take(order)
    if np.all(numbers[1:] >= numbers[:-1]):
        return rows
    # This sort merges sorted sequences; rows usually consist of a few, such as uploads or runs.
    return rows.take(pa.array(np.argsort(numbers, kind="stable")))


def _numbers(rows: pa.Table, key: Sequence[str]) -> NDArray[np.integer[Any]] | None:
    """Return the key's numbers if it is a single integer, time or date column."""
    column = rows[key[0]]
    bits = _BITS.get(column.type)
    if len(key) > 1 or bits is None or column.null_count or column.num_chunks != 1:
        return None
    numbers: NDArray[np.integer[Any]] = column.chunk(0).view(bits).to_numpy()
    return numbers


def live_rows(rows: pa.Table) -> pa.Table:
    """Return the rows that exist after the operations, without their masks."""
    remaining = rows.drop_columns([OP])
    is_live = (rows[OP].to_numpy() & GONE) == 0
    # Rows are rarely deleted, and filtering copies all others, which costs as much as sorting.
    return remaining if is_live.all() else remaining.filter(pa.array(is_live))


def _starts(rows: pa.Table, key: Sequence[str]) -> Positions:
    """Return where each key begins among sorted rows."""
    differs = np.zeros(rows.num_rows, dtype=bool)
    differs[0] = True
    for name in key:
        column = rows[name].combine_chunks()
        is_valid = column.is_valid().to_numpy(zero_copy_only=False)
        unequal = pc.not_equal(column.slice(1), column.slice(0, len(column) - 1))
        differs[1:] |= pc.fill_null(unequal, False).to_numpy(zero_copy_only=False)
        differs[1:] |= is_valid[1:] != is_valid[:-1]
    return np.flatnonzero(differs)


def _fold(rows: pa.Table, starts: Positions, lasts: Positions, bits: Mapping[str, int]) -> pa.Table:
    masks = rows[OP].to_numpy()
    positions = np.arange(rows.num_rows, dtype=np.int64)
    cleared = np.maximum.reduceat(np.where(masks & CLEARS, positions, -1), starts)
    counts = lasts - starts + 1
    is_effective = positions >= np.repeat(cleared, counts)
    mask = np.where(cleared >= 0, CLEARS, 0) | (masks[lasts] & GONE)
    columns = {}
    for name in rows.column_names:
        if name not in bits:
            columns[name] = rows[name].take(pa.array(starts))
            continue
        is_set = is_effective & ((masks & bits[name]) != 0)
        newest = np.maximum.reduceat(np.where(is_set, positions, -1), starts)
        columns[name] = rows[name].take(pa.array(newest, mask=newest < 0))
        mask |= np.where(newest >= 0, bits[name], 0)
    columns[OP] = pa.chunked_array([pa.array(mask, pa.int64())])
    return pa.table(columns, schema=rows.schema)
