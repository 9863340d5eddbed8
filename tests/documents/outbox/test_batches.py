"""A batch names every partition that it touches, however many keys it writes."""

from __future__ import annotations

import random

import pytest

from documents.outbox.batches import FEW, MOST_PARTITIONS, standing_for


def touched(hashes: list[int], partitions: int) -> set[int]:
    return {(each & 0xFFFF_FFFF) % partitions for each in hashes}


@pytest.mark.parametrize("seed", range(5))
def test_few_hashes_stand_for_very_many(seed: int) -> None:
    chance = random.Random(seed)
    # Some partitions of every grid are touched by none.
    skipped = chance.choice([1, 3, 64])
    drawn = (chance.randrange(-(2**31), 2**31) for _ in range(10_000))
    hashes = [each for each in drawn if skipped == 1 or (each & 0xFFFF_FFFF) % skipped]
    standing = list(standing_for(hashes))
    for partitions in range(1, MOST_PARTITIONS + 1):
        assert touched(standing, partitions) == touched(hashes, partitions)
    assert len(standing) <= FEW


def test_a_small_batch_names_its_keys_as_they_are() -> None:
    assert list(standing_for([5, -7, 9])) == [5, -7, 9]
