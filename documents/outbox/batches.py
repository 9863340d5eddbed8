"""The write partitions that an atomic batch touches, stored with each of its rows.

An entry of a batch names all the partitions that the batch touches, so that a reader of one part
knows which others to wait for. The number of partitions differs from grid to grid, so rows keep
hashes of keys. For a batch of thousands, a few hundred hashes stand for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

#: The most write partitions that a grid has.
MOST_PARTITIONS = 64
#: Up to this many hashes are kept as they are.
FEW = 500
_UNSIGNED = 0xFFFF_FFFF


def standing_for(hashes: Sequence[int]) -> Sequence[int]:
    """Return hashes that fall into the same partitions as all of these, in any grid."""
    if len(hashes) <= FEW:
        return hashes
    # By number of partitions, those that no chosen hash falls into yet.
    missing = {count: set(range(count)) for count in range(1, MOST_PARTITIONS + 1)}
    chosen: list[int] = []
    for each in hashes:
        unsigned = each & _UNSIGNED
        touched = [count for count, parts in missing.items() if unsigned % count in parts]
        if touched:
            chosen.append(each)
        for count in touched:
            missing[count].discard(unsigned % count)
            if not missing[count]:
                del missing[count]
        if not missing:
            break
    return chosen
