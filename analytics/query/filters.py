"""A filter as a condition in SQL, and the values of columns that can match it.

The language is that of documents, restricted to flat columns. A comparison with null holds only for
`$eq`, `$ne`, `$in` and `$nin`; `$ne` and `$nin` hold for null too.
"""

from __future__ import annotations

import datetime
import functools
import math
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from analytics.query.literals import InvalidLiteral, Literal, days, literal, microseconds
from analytics.query.ranges import Plain, ValueRange, either
from analytics.query.sql_text import Sql, column, formatted, joined, parameter
from foundation.errors import ApiError, FieldProblem, InvalidFilter, UnsupportedOperator
from foundation.json_types import JsonValue

MAX_NODES, MAX_DEPTH, MAX_IN = 1_000, 50, 10_000
_COMPARES: Mapping[str, str] = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_TRUE, _FALSE = Sql("true"), Sql("false")
_PLAIN_TYPES = {pa.timestamp("us", "UTC"): pa.int64(), pa.date32(): pa.int32()}


@dataclass(frozen=True, slots=True)
class FilterCondition:
    """One conjunct of a filter."""

    sql: Sql
    columns: frozenset[str]
    #: The values to which it restricts columns.
    ranges: Mapping[str, ValueRange] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RowFilter:
    """The conditions on rows."""

    conditions: tuple[FilterCondition, ...] = ()

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(name for part in self.conditions for name in part.columns)

    @property
    def sql(self) -> Sql:
        return _all(part.sql for part in self.conditions)

    def within(self, names: Collection[str]) -> RowFilter:
        """Return a filter with only the ranges of these columns."""
        return RowFilter(
            tuple(
                FilterCondition(_TRUE, frozenset({name}), {name: values})
                for name in names
                for values in self.ranges(name)
            )
        )

    def ranges(self, name: str) -> list[ValueRange]:
        """Return the ranges of a column's values, all of which apply."""
        return [part.ranges[name] for part in self.conditions if name in part.ranges]

    def restricted(self, names: Iterable[str]) -> frozenset[str]:
        """Return which of these columns have ranges."""
        return frozenset(name for name in names if self.ranges(name))

    def nearly(self, schema: pa.Schema) -> pc.Expression | None:
        """Return a condition of Arrow that holds for all rows that match, and for few others."""
        expressions = [
            expression
            for one in schema
            for values in self.ranges(one.name)
            if (expression := values.expression(one.name, one.type)) is not None
        ]
        return functools.reduce(operator.and_, expressions) if expressions else None


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


def near_values(name: str, values: pa.Array) -> RowFilter:
    """Return a filter that only has the range of these values of a column."""
    bits = _PLAIN_TYPES.get(values.type)
    plain = (values.view(bits) if bits else values).unique().drop_null().to_pylist()
    ranges = {name: ValueRange.of(plain)} if plain else {}
    return RowFilter((FilterCondition(_TRUE, frozenset({name}), ranges),))


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
        filters = [RowFilter(tuple(part)) for part in parts]
        columns = frozenset(c for part in filters for c in part.columns)
        any_of = formatted("({})", joined(" OR ", (part.sql for part in filters)))
        if name == "$or":
            yield FilterCondition(any_of, columns, _common_ranges(filters))
        else:
            yield FilterCondition(_negation(any_of), columns)

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
        if name in self._ids and op in _COMPARES:
            raise _wrong(pointer, "Keys that are stored as ids cannot be compared by order.")
        if op in ("$in", "$nin"):
            values = self._list(name, operand, pointer)
            within = _among(name, values)
            return (
                _condition(name, _negation(within))
                if op == "$nin"
                else _equals(name, within, values)
            )
        if op == "$exists":
            if not isinstance(operand, bool):
                raise _wrong(pointer, "Expected `true` or `false`.")
            return _condition(name, Sql(f"({column(name)} IS {'NOT ' if operand else ''}NULL)"))
        value = self._literal(name, operand, pointer)
        if op in ("$eq", "$ne"):
            equal = _equal(name, value)
            return (
                _condition(name, _negation(equal)) if op == "$ne" else _equals(name, equal, [value])
            )
        if op not in _COMPARES:
            raise _unsupported(op, pointer)
        if value is None:
            raise _wrong(pointer, "Null cannot be compared by order.")
        return _in_order(name, op, value, self._types[name])

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


def _condition(name: str, sql: Sql, *ranges: ValueRange) -> FilterCondition:
    return FilterCondition(sql, frozenset({name}), dict.fromkeys([name], *ranges) if ranges else {})


def _equals(name: str, sql: Sql, values: Sequence[Literal]) -> FilterCondition:
    """Return a condition that holds for these values only."""
    plain = [_plain(value) for value in values]
    present = [value for value in plain if value is not None and not _is_nan(value)]
    if not present or len(present) < len(plain):
        return _condition(name, sql)
    return _condition(name, sql, ValueRange.of(present))


def _in_order(name: str, op: str, value: Literal, kind: pa.DataType) -> FilterCondition:
    if _is_nan(value):
        return _condition(name, _FALSE)
    compared = formatted(f"({column(name)} {_COMPARES[op]} {{}})", parameter(value))
    bound = _plain(value)
    if op not in ("$gt", "$gte"):
        return _condition(name, compared, ValueRange(high=bound))
    if pa.types.is_floating(kind):
        # In SQL, NaN is greater than any number.
        compared = formatted(f"({{}} AND NOT isnan({column(name)}))", compared)
    return _condition(name, compared, ValueRange(low=bound))


def _among(name: str, values: Sequence[Literal]) -> Sql:
    present = [parameter(value) for value in values if value is not None]
    listed = formatted(f"({column(name)} IN ({{}}))", joined(", ", present))
    matches = listed if present else _FALSE
    if len(present) == len(values):
        return matches
    return formatted(f"({{}} OR {column(name)} IS NULL)", matches)


def _equal(name: str, value: Literal) -> Sql:
    if value is None:
        return Sql(f"({column(name)} IS NULL)")
    # NaN is equal to nothing, as in IEEE 754.
    return _FALSE if _is_nan(value) else formatted(f"({column(name)} = {{}})", parameter(value))


def _negation(condition: Sql) -> Sql:
    """Return a condition that holds where another does not; its null counts as false."""
    return formatted("(NOT coalesce({}, false))", condition)


def _common_ranges(filters: Sequence[RowFilter]) -> Mapping[str, ValueRange]:
    """Return the ranges of a disjunction: of columns that every alternative restricts."""
    names = frozenset.intersection(*(part.restricted(part.columns) for part in filters))
    # Each range of an alternative holds for it, so any of them will do.
    return {name: either([part.ranges(name)[0] for part in filters]) for name in names}


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _plain(value: Literal) -> Plain | None:
    """Return a value in the form of key parts (`analytics.rows.keys`)."""
    if isinstance(value, datetime.datetime):
        return microseconds(value)
    if isinstance(value, datetime.date):
        return days(value)
    return value


def _all(conditions: Iterable[Sql]) -> Sql:
    parts = list(conditions)
    return formatted("({})", joined(" AND ", parts)) if parts else _TRUE


def _wrong(pointer: str, detail: str) -> ApiError:
    return InvalidFilter(detail, errors=[FieldProblem(pointer, "invalid_filter", detail)])


def _unsupported(name: str, pointer: str) -> ApiError:
    detail = f"The operator {name[:40]} is not supported here."
    problem = FieldProblem(pointer, "unsupported_operator", detail)
    return UnsupportedOperator(detail, errors=[problem])
