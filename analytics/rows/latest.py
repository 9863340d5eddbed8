"""Many operations on a key become one, without a step of Python per row.

Rows come in the order in which they were uploaded. A stable sort by key puts the operations on one
key side by side, the latest last; for each column the last one that sets it, and is not older than
the last one that clears, has its value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from analytics.schema import CLEARS, GONE, OP

Positions = NDArray[np.int64]


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
        # Whatever came before is cleared: the last operation is all there is.
        return rows.take(pa.array(lasts))
    return _folded(rows, starts, lasts, {n: bits[n] for n in rows.column_names if n in bits})


def by_key(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Sort rows by key. Rows of one key keep their order."""
    order = pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in key])
    return rows.combine_chunks().take(order)


def living(rows: pa.Table) -> pa.Table:
    """Return the rows that operations leave, without their masks."""
    gone = pc.bit_wise_and(rows[OP], pa.scalar(GONE, pa.int64()))
    return rows.filter(pc.equal(gone, 0)).drop_columns([OP])


def _starts(rows: pa.Table, key: Sequence[str]) -> Positions:
    """Return where each key begins among sorted rows."""
    differs = np.zeros(rows.num_rows, dtype=bool)
    differs[0] = True
    for name in key:
        column = rows[name].combine_chunks()
        there = column.is_valid().to_numpy(zero_copy_only=False)
        unequal = pc.not_equal(column.slice(1), column.slice(0, len(column) - 1))
        differs[1:] |= pc.fill_null(unequal, False).to_numpy(zero_copy_only=False)
        differs[1:] |= there[1:] != there[:-1]
    return np.flatnonzero(differs)


def _folded(
    rows: pa.Table, starts: Positions, lasts: Positions, bits: Mapping[str, int]
) -> pa.Table:
    masks = rows[OP].to_numpy()
    places = np.arange(rows.num_rows, dtype=np.int64)
    cleared = np.maximum.reduceat(np.where(masks & CLEARS, places, -1), starts)
    counts = lasts - starts + 1
    counted = places >= np.repeat(cleared, counts)
    folded = np.where(cleared >= 0, CLEARS, 0) | (masks[lasts] & GONE)
    columns = {}
    for name in rows.column_names:
        if name not in bits:
            columns[name] = rows[name].take(pa.array(starts))
            continue
        setting = counted & ((masks & bits[name]) != 0)
        found = np.maximum.reduceat(np.where(setting, places, -1), starts)
        columns[name] = rows[name].take(pa.array(found, mask=found < 0))
        folded |= np.where(found >= 0, bits[name], 0)
    columns[OP] = pa.chunked_array([pa.array(folded, pa.int64())])
    return pa.table(columns, schema=rows.schema)
