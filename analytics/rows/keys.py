"""Keys as values that compare in Python as Arrow sorts them.

Integers, times and dates are integers; texts are texts, since code points sort like their UTF-8
bytes. The key of a secondary view may contain null, which sorts last.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TypeAlias

import pyarrow as pa


class Null:
    """Null in a key: greater than any value, and equal to itself."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Null)

    def __hash__(self) -> int:
        return hash(Null)

    def __lt__(self, other: object) -> bool:
        return False

    def __le__(self, other: object) -> bool:
        return isinstance(other, Null)

    def __gt__(self, other: object) -> bool:
        return not isinstance(other, Null)

    def __ge__(self, other: object) -> bool:
        return True


Part: TypeAlias = int | str | Null
Key: TypeAlias = tuple[Part, ...]
#: A key in JSON.
Plain: TypeAlias = list[int | str | None]

NULL = Null()


def key_at(rows: pa.Table, key: Sequence[str], index: int) -> Key:
    """Return the key of one row."""
    return tuple(_part(rows[name][index]) for name in key)


def insertion_point(rows: pa.Table, key: Sequence[str], target: Key) -> int:
    """Return how many of sorted `rows` precede a key, or all keys with that prefix."""
    low, high = 0, rows.num_rows
    while low < high:
        middle = (low + high) // 2
        if key_at(rows, key[: len(target)], middle) < target:
            low = middle + 1
        else:
            high = middle
    return low


def to_plain(key: Key) -> Plain:
    return [None if isinstance(part, Null) else part for part in key]


def from_plain(parts: Iterable[int | str | None]) -> Key:
    return tuple(NULL if part is None else part for part in parts)


def to_text(key: Key) -> str:
    return json.dumps(to_plain(key), separators=(",", ":"), ensure_ascii=False)


def from_text(text: str) -> Key:
    return from_plain(json.loads(text))


def _part(value: pa.Scalar) -> Part:
    if not value.is_valid:
        return NULL
    if isinstance(value, pa.TimestampScalar | pa.Date32Scalar):
        return int(value.value)
    part: int | str = value.as_py()
    return part
