"""Ranges of the values that a filter can match. Readers use them to skip files and rows."""

from __future__ import annotations

import functools
import operator
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from analytics.rows.keys import Part

#: A value in the form of key parts (`analytics.rows.keys`), but for null.
Plain: TypeAlias = int | str | float
#: Longer lists of values are replaced with their range.
_MAX_LISTED = 1_000


@dataclass(frozen=True, slots=True)
class ValueRange:
    """An inclusive range of values, of which only `values` can match if it lists them.

    None: unbounded.
    """

    low: Plain | None = None
    high: Plain | None = None
    #: Sorted.
    values: tuple[Plain, ...] = ()

    @classmethod
    def of(cls, values: Iterable[Plain]) -> ValueRange:
        """Return the range of these values, of which there is at least one."""
        ordered = sorted(set(values))
        listed = tuple(ordered) if len(ordered) <= _MAX_LISTED else ()
        return cls(ordered[0], ordered[-1], listed)

    def meets(self, lowest: Part | float, highest: Part | float) -> bool:
        """Return whether a value from `lowest` to `highest` can match."""
        if self.low is not None and highest < self.low:  # type: ignore[operator]
            return False
        if self.high is not None and lowest > self.high:  # type: ignore[operator]
            return False
        if not self.values:
            return True
        following = bisect_left(self.values, lowest)
        return following < len(self.values) and self.values[following] <= highest  # type: ignore[operator]

    def expression(self, name: str, kind: pa.DataType) -> pc.Expression | None:
        """Return a condition on a column of a type; None if it restricts nothing."""
        field = pc.field(name)
        # Arrow's sets distinguish 0.0 from -0.0.
        if self.values and not pa.types.is_floating(kind):
            values = [value for value in self.values if _fits(value, kind)]
            return field.isin(pa.array(values, _plain_type(kind)).cast(kind))
        bounds = []
        if self.low is not None:
            bounds.append(field >= _scalar(self.low, kind))
        if self.high is not None:
            bounds.append(field <= _scalar(self.high, kind))
        return functools.reduce(operator.and_, bounds) if bounds else None


def either(ranges: Sequence[ValueRange]) -> ValueRange:
    """Return the smallest range that has the values of all of these."""
    if all(one.values for one in ranges):
        return ValueRange.of(value for one in ranges for value in one.values)
    lows, highs = [one.low for one in ranges], [one.high for one in ranges]
    return ValueRange(
        None if None in lows else min(lows),  # type: ignore[type-var]
        None if None in highs else max(highs),  # type: ignore[type-var]
    )


def _fits(value: Plain, kind: pa.DataType) -> bool:
    """Return whether a column of a type can have a value."""
    if not pa.types.is_integer(kind):
        return True
    limit = 1 << (kind.bit_width - 1)
    return not isinstance(value, str) and value == int(value) and -limit <= value < limit


def _scalar(value: Plain, kind: pa.DataType) -> pa.Scalar:
    """Return a bound; that of an integer column may be a fraction, or out of its range."""
    if isinstance(value, float) or pa.types.is_floating(kind):
        return pa.scalar(float(value))
    if pa.types.is_integer(kind):
        return pa.scalar(value, pa.int64())
    return pa.scalar(value, _plain_type(kind)).cast(kind)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.int64()
    return pa.int32() if pa.types.is_date(kind) else kind
