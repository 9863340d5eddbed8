"""Determining the transaction that wrote a row, of whose id PostgreSQL stores only the lower
half.
"""

from __future__ import annotations

import pytest

from documents.store.postgres_snapshot import full_xid

ROUND = 1 << 32


@pytest.mark.parametrize(
    ("xid", "xmax", "whole"),
    [
        (700, 800, 700),
        (700, ROUND + 800, ROUND + 700),
        (900, ROUND + 800, 900),
        (ROUND - 1, ROUND + 5, ROUND - 1),
        (900, 800, 0),
        (2, 800, 0),
    ],
)
def test_a_writer_is_the_last_transaction_below_the_snapshots_end_with_its_number(
    xid: int, xmax: int, whole: int
) -> None:
    assert full_xid(xid, xmax) == whole
