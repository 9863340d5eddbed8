"""The kinds of values, by which expressions are checked: DuckDB's types, from before any rule."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

from sqlglot import exp

from analytics.sql.spark.constants import date_of, time_of
from analytics.sql.spark.grammar import Untranslatable

_T = exp.DataType.Type


class Kind(StrEnum):
    """What two values must have in common to be compared."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    DOUBLE = "double"
    TEXT = "text"
    BOOLEAN = "boolean"
    DATE = "date"
    TIME = "time"
    NULL = "null"
    UNKNOWN = "unknown"


KINDS: Mapping[object, Kind] = {
    **dict.fromkeys((_T.TINYINT, _T.SMALLINT, _T.INT, _T.BIGINT, _T.INT128), Kind.INTEGER),
    _T.DECIMAL: Kind.DECIMAL,
    _T.DOUBLE: Kind.DOUBLE,
    **dict.fromkeys((_T.VARCHAR, _T.TEXT), Kind.TEXT),
    _T.BOOLEAN: Kind.BOOLEAN,
    _T.DATE: Kind.DATE,
    **dict.fromkeys((_T.TIMESTAMP, _T.TIMESTAMPTZ), Kind.TIME),
    _T.NULL: Kind.NULL,
}
NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE})
TIMES = frozenset({Kind.DATE, Kind.TIME})
NULLS = frozenset({Kind.NULL})
WHOLE = re.compile(r"\d{1,9}\Z")


def kind_of(node: exp.Expr | None) -> Kind:
    if isinstance(node, exp.Null):
        return Kind.NULL
    if node is not None and node.type is not None and node.type.this in KINDS:
        return KINDS[node.type.this]
    return kind_of(node.this) if isinstance(node, exp.Paren | exp.Alias) else Kind.UNKNOWN


def require(node: exp.Expr, kinds: frozenset[Kind] | set[Kind]) -> None:
    kind = kind_of(node)
    if Kind.TEXT in kinds and is_text_constant(node):
        return
    if kind not in kinds and kind is not Kind.NULL:
        raise wrong_types(node)


def wrong_types(node: exp.Expr) -> Untranslatable:
    text = node.sql("duckdb", comments=False)[:60]
    return Untranslatable(f"The types in {text!r} are not available on Spark.")


def same_kind(kinds: set[Kind]) -> None:
    if Kind.UNKNOWN in kinds or not (len(kinds) <= 1 or kinds <= NUMBERS or kinds <= TIMES):
        raise Untranslatable("Values of different types in one expression need casts on Spark.")


def is_text_constant(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def whole_number(node: exp.Expr, place: str) -> int:
    if isinstance(node, exp.Literal) and not node.is_string and WHOLE.match(node.name):
        return int(node.name)
    raise Untranslatable(f"{place} needs a constant whole number on Spark.")


def aligned(operands: list[exp.Expr]) -> list[exp.Expr]:
    """Return operands of one kind: texts beside dates and times become these."""
    kinds = {kind_of(one) for one in operands if not is_text_constant(one)} - NULLS
    if kinds and kinds <= TIMES:
        of_text = date_of if kinds == {Kind.DATE} else time_of
        return [of_text(one.name) if is_text_constant(one) else one for one in operands]
    if any(is_text_constant(one) for one in operands):
        kinds |= {Kind.TEXT}
    same_kind(kinds)
    return operands
