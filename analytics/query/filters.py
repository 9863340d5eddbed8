"""A filter as an expression over columns, and the keys that can match it.

The language is that of documents, restricted to flat columns. A comparison with null holds only for
`$eq`, `$ne`, `$in` and `$nin`; `$ne` and `$nin` hold for null too.
"""

from __future__ import annotations

import datetime
import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from analytics.query.literals import InvalidLiteral, Literal, literal
from analytics.rows.keys import Part
from foundation.errors import ApiError, FieldProblem, InvalidFilter, UnsupportedOperator
from foundation.json_types import JsonValue

MAX_NODES, MAX_DEPTH, MAX_IN = 1_000, 50, 10_000
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_COMPARES: Mapping[str, Callable[[Any, Any], pc.Expression]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_ALL = pc.scalar(True)
_INT32 = 2**31
#: Longer lists of values are replaced with their range.
_MAX_LISTED = 1_000


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The inclusive range of a column's values that a filter can match; None: unbounded."""

    low: int | str | float | None = None
    high: int | str | float | None = None

    def meets(self, lowest: Part, highest: Part) -> bool:
        """Return whether the range overlaps the one from `lowest` to `highest`."""
        if self.low is not None and highest < self.low:  # type: ignore[operator]
            return False
        return not (self.high is not None and lowest > self.high)  # type: ignore[operator]


@dataclass(frozen=True, slots=True)
class FilterCondition:
    """One conjunct of a filter."""

    expression: pc.Expression
    columns: frozenset[str]
    #: The range of values to which it restricts its column, if it has a single column.
    range: ValueRange = ValueRange()


@dataclass(frozen=True, slots=True)
class RowFilter:
    """The conditions on rows."""

    conditions: tuple[FilterCondition, ...] = ()

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(name for part in self.conditions for name in part.columns)

    @property
    def expression(self) -> pc.Expression | None:
        return _conjunction(part.expression for part in self.conditions)

    def within(self, columns: Iterable[str]) -> RowFilter:
        """Return the conjuncts that use only these columns."""
        names = set(columns)
        return RowFilter(tuple(part for part in self.conditions if part.columns <= names))

    def ranges(self, column: str) -> list[ValueRange]:
        """Return the ranges of a column's values, all of which apply."""
        return [part.range for part in self.conditions if part.columns == {column}]


#: Returns the id of a key.
IdOf: TypeAlias = Callable[[int | str], int]


def read_filter(
    body: JsonValue,
    types: Mapping[str, pa.DataType],
    pointer: str,
    ids: Mapping[str, IdOf] | None = None,
) -> RowFilter:
    """Return a filter over columns of these types, or raise `InvalidFilter`.

    `ids` maps columns that are stored as ids to lookups; filters use their keys.
    """
    parser = _FilterParser(types, ids or {})
    return RowFilter(tuple(parser.conditions(body, pointer, 0)))


def near_values(column: str, values: pa.Array) -> FilterCondition:
    """Return a condition that holds for these values of a column, and for few others."""
    field, bounds = pc.field(column), pc.min_max(values)
    if len(values) <= _MAX_LISTED:
        expression = field.isin(values)
    else:
        expression = (field >= bounds["min"]) & (field <= bounds["max"])
    low, high = (_plain(bounds[end].as_py()) for end in ("min", "max"))
    return FilterCondition(expression, frozenset({column}), ValueRange(low, high))


class _FilterParser:
    """Parses one filter, and counts its nodes."""

    def __init__(self, types: Mapping[str, pa.DataType], ids: Mapping[str, IdOf]) -> None:
        self._types = types
        self._ids = ids
        self._nodes = 0

    def conditions(self, body: JsonValue, pointer: str, depth: int) -> Iterator[FilterCondition]:
        if not isinstance(body, dict):
            raise _wrong(pointer, "A filter must be an object.")
        if depth > MAX_DEPTH:
            raise _wrong(pointer, f"A filter may be nested at most {MAX_DEPTH} levels deep.")
        for name, value in body.items():
            member_pointer = f"{pointer}/{name}"
            self._nodes += 1
            if self._nodes > MAX_NODES:
                raise _wrong(member_pointer, f"A filter may have at most {MAX_NODES} parts.")
            if name.startswith("$"):
                yield from self._logical(name, value, member_pointer, depth)
            else:
                yield from self._column(name, value, member_pointer)

    def _logical(
        self, name: str, value: JsonValue, pointer: str, depth: int
    ) -> Iterator[FilterCondition]:
        if name not in ("$and", "$or", "$nor"):
            raise _unsupported(name, pointer)
        if not isinstance(value, list) or not value:
            raise _wrong(pointer, "Expected a non-empty list of filters.")
        parts = [
            list(self.conditions(part, f"{pointer}/{index}", depth + 1))
            for index, part in enumerate(value)
        ]
        if name == "$and":
            for part in parts:
                yield from part
            return
        alternatives = [_conjunction(p.expression for p in part) for part in parts]
        either = functools.reduce(operator.or_, [_ALL if w is None else w for w in alternatives])
        columns = frozenset(c for part in parts for p in part for c in p.columns)
        # A comparison with null is null, which counts as false before the negation.
        yield FilterCondition(either if name == "$or" else ~pc.coalesce(either, False), columns)

    def _column(self, name: str, value: JsonValue, pointer: str) -> Iterator[FilterCondition]:
        if name not in self._types:
            raise _wrong(pointer, f"The column {name[:63]!r} does not exist.")
        if not _is_operators(value, self._types[name]):
            yield self._compare(name, "$eq", value, pointer)
            return
        for op, operand in value.items():  # type: ignore[union-attr]
            self._nodes += 1
            yield self._compare(name, op, operand, f"{pointer}/{op}")

    def _compare(self, name: str, op: str, operand: JsonValue, pointer: str) -> FilterCondition:
        field, columns = pc.field(name), frozenset({name})
        kind = pa.int64() if name in self._ids else self._types[name]
        if name in self._ids and op in _COMPARES:
            raise _wrong(pointer, "Keys that are stored as ids cannot be compared by order.")
        if op in ("$in", "$nin"):
            values = self._list(name, operand, pointer)
            within = _among(field, values, kind)
            if op == "$nin":
                return FilterCondition(~within, columns)
            return FilterCondition(within, columns, _range_of([v for v in values if v is not None]))
        if op == "$exists":
            if not isinstance(operand, bool):
                raise _wrong(pointer, "Expected `true` or `false`.")
            return FilterCondition(field.is_valid() if operand else field.is_null(), columns)
        value = self._literal(name, operand, pointer)
        if op in ("$eq", "$ne"):
            equal = _equal(field, value, kind)
            if op == "$ne":
                return FilterCondition(~pc.coalesce(equal, False), columns)
            return FilterCondition(equal, columns, _range_of([] if value is None else [value]))
        if op not in _COMPARES:
            raise _unsupported(op, pointer)
        if value is None:
            raise _wrong(pointer, "Null cannot be compared by order.")
        compared = _COMPARES[op](field, _scalar(value, kind))
        plain = _plain(value)
        bound = ValueRange(low=plain) if op in ("$gt", "$gte") else ValueRange(high=plain)
        return FilterCondition(compared, columns, bound)

    def _list(self, name: str, operand: JsonValue, pointer: str) -> list[Literal]:
        if not isinstance(operand, list) or len(operand) > MAX_IN:
            raise _wrong(pointer, f"Expected a list of at most {MAX_IN} values.")
        return [self._literal(name, v, f"{pointer}/{n}") for n, v in enumerate(operand)]

    def _literal(self, name: str, operand: JsonValue, pointer: str) -> Literal:
        try:
            value = literal(operand, self._types[name])
        except InvalidLiteral as error:
            raise _wrong(pointer, f"The value cannot be compared: {error}.") from None
        if name in self._ids and isinstance(value, int | str):
            return self._ids[name](value)
        return value


def _is_operators(value: JsonValue, kind: pa.DataType) -> bool:
    """Return whether an object has operators. Extended JSON and composite keys are values."""
    if not isinstance(value, dict):
        return False
    if pa.types.is_struct(kind):
        return any(name.startswith("$") for name in value)
    return not (len(value) == 1 and next(iter(value)).startswith(("$number", "$date")))


def _among(field: pc.Expression, values: list[Literal], kind: pa.DataType) -> pc.Expression:
    present = [v for v in values if v is not None]
    matches = pc.scalar(False)
    if present:
        list_type = _list_type(present, kind)
        array = pa.array([_rounded(value, list_type) for value in present], list_type)
        matches = (field if array.type == kind else field.cast(array.type)).isin(array)
    return matches | field.is_null() if len(present) < len(values) else matches


def _equal(field: pc.Expression, value: Literal, kind: pa.DataType) -> pc.Expression:
    if value is None:
        return field.is_null()
    return field == _scalar(value, kind)


def _scalar(value: Literal, kind: pa.DataType) -> pa.Scalar:
    scalar_type = _scalar_type(value, kind)
    return pa.scalar(_rounded(value, scalar_type), scalar_type)


def _rounded(value: Literal, kind: pa.DataType) -> Literal:
    """Return the nearest double of an integer: Arrow rejects integers that it must round."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if is_whole and pa.types.is_floating(kind) else value  # type: ignore[arg-type]


def _scalar_type(value: Literal, kind: pa.DataType) -> pa.DataType:
    """An integer column may be compared with a fraction, or a number out of its range."""
    if pa.types.is_floating(kind) or isinstance(value, float):
        return pa.float64()
    return pa.int64() if pa.types.is_integer(kind) else kind


def _list_type(values: Sequence[Literal], kind: pa.DataType) -> pa.DataType:
    if not pa.types.is_integer(kind):
        return kind
    if any(isinstance(value, float) for value in values):
        return pa.float64()
    fits = all(isinstance(v, int) and abs(v) < _INT32 for v in values)
    return kind if fits else pa.int64()


def _range_of(values: list[Literal]) -> ValueRange:
    plain = [_plain(value) for value in values]
    present = [value for value in plain if value is not None]
    if not present or len(present) < len(plain):
        return ValueRange()
    return ValueRange(min(present), max(present))


def _plain(value: Literal) -> int | str | float | None:
    """Return a value in the form of key parts (`analytics.rows.keys`)."""
    if isinstance(value, datetime.datetime):
        return (value - _EPOCH) // _MICROSECOND
    if isinstance(value, datetime.date):
        return (value - _EPOCH.date()).days
    return value


def _conjunction(expressions: Iterable[pc.Expression]) -> pc.Expression | None:
    parts = list(expressions)
    return functools.reduce(operator.and_, parts) if parts else None


def _wrong(pointer: str, detail: str) -> ApiError:
    return InvalidFilter(detail, errors=[FieldProblem(pointer, "invalid_filter", detail)])


def _unsupported(name: str, pointer: str) -> ApiError:
    detail = f"The operator {name[:40]} is not supported here."
    problem = FieldProblem(pointer, "unsupported_operator", detail)
    return UnsupportedOperator(detail, errors=[problem])
