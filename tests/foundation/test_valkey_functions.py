"""Calls of bounded size."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from foundation.valkey_functions import MAX_CALL_BYTES, divide_into_calls

MAX_ENTRIES = 10
PARTS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, MAX_CALL_BYTES + 1)), max_size=40)


def total(call: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return sum(entries for entries, _ in call), sum(size_bytes for _, size_bytes in call)


@given(parts=PARTS)
def test_calls_are_bounded_and_preserve_the_order_of_their_parts(
    parts: list[tuple[int, int]],
) -> None:
    calls = list(divide_into_calls(parts, lambda part: part, MAX_ENTRIES))
    assert [part for call in calls for part in call] == parts
    for call in calls:
        entries, size_bytes = total(call)
        assert len(call) == 1 or (entries <= MAX_ENTRIES and size_bytes <= MAX_CALL_BYTES)


@given(parts=PARTS)
def test_no_call_could_contain_the_next_part_as_well(parts: list[tuple[int, int]]) -> None:
    calls = list(divide_into_calls(parts, lambda part: part, MAX_ENTRIES))
    for call, following in itertools.pairwise(calls):
        entries, size_bytes = total([*call, following[0]])
        assert entries > MAX_ENTRIES or size_bytes > MAX_CALL_BYTES
