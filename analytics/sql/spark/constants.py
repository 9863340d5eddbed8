"""Constants of a statement as constants of Spark's SQL.

Texts are parameters, so that no text of a statement is part of the SQL that Spark parses.
"""

from __future__ import annotations

import datetime
import re
from decimal import Decimal
from typing import TypeAlias

from sqlglot import exp

from analytics.sql.parameters import Bound
from analytics.sql.spark.grammar import Untranslatable

_INTEGER = re.compile(r"\d{1,19}\Z")
_DECIMAL = re.compile(r"(\d{0,37})\.(\d{0,37})\Z")
_DOUBLE = re.compile(r"\d{1,40}(\.\d{0,40})?[eE][+-]?\d{1,3}\Z")
_DATE = re.compile(r"\d{4}-\d\d-\d\d\Z")
_TIME = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?(Z|[+-]\d\d(:?\d\d)?)?\Z")
_INT32, _INT64 = 2**31, 2**63
_MAX_PRECISION = 38
#: The values of the parameters of the generated SQL, by their names.
Texts: TypeAlias = dict[str, str]


def parameter(texts: Texts, text: str) -> exp.Expr:
    """Return a reference to a text, which is passed beside the SQL."""
    name = f"t{len(texts)}"
    texts[name] = text
    return exp.Placeholder(this=name)


def typed_number(literal: exp.Literal) -> exp.Expr:
    """Return a number with the type that DuckDB gives it."""
    text = str(literal.this)
    if _INTEGER.match(text):
        value = int(text)
        if value >= _INT64:
            raise Untranslatable("Integers beyond 64 bits are not available on Spark.")
        return literal if value < _INT32 else _cast(literal, "BIGINT")
    if match := _DECIMAL.match(text):
        digits = len(match[1].lstrip("0")) + len(match[2])
        if digits > _MAX_PRECISION:
            raise Untranslatable("Decimals of more than 38 digits are not available on Spark.")
        return _cast(literal, f"DECIMAL({max(digits, 1)}, {len(match[2])})")
    if _DOUBLE.match(text):
        return _cast(literal, "DOUBLE")
    raise Untranslatable(f"The number {text[:40]} is not available on Spark.")


def bound_value(value: Bound) -> exp.Expr:
    """Return the constant for a parameter of the statement."""
    if value is None:
        return exp.null()
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    if isinstance(value, str):
        return exp.Literal.string(value)
    if isinstance(value, datetime.datetime):
        return _cast(exp.Literal.string(value.isoformat()), "TIMESTAMPTZ")
    if isinstance(value, list):
        raise Untranslatable("Lists as parameters are not available on Spark.")
    if isinstance(value, Decimal):
        text = f"{value:f}"
    elif isinstance(value, float):
        text = repr(value) if "e" in repr(value) else f"{value!r}e0"
    else:
        text = str(value)
    number = exp.Literal.number(text.removeprefix("-"))
    return exp.Paren(this=exp.Neg(this=number)) if text.startswith("-") else number


def date_of(text: str) -> exp.Expr:
    """Return the date that a text stands for."""
    if not _DATE.match(text):
        raise Untranslatable(f"The date {text[:40]!r} is not available on Spark.")
    try:
        normal = datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise Untranslatable(f"The date {text[:40]!r} is not available on Spark.") from None
    return _cast(exp.Literal.string(normal), "DATE")


def time_of(text: str) -> exp.Expr:
    """Return the time that a text stands for, in UTC unless it names another offset."""
    detail = f"The time {text[:40]!r} is not available on Spark."
    if not _TIME.match(text):
        raise Untranslatable(detail)
    try:
        moment = datetime.datetime.fromisoformat(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        normal = moment.astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        raise Untranslatable(detail) from None
    return _cast(exp.Literal.string(normal.isoformat()), "TIMESTAMPTZ")


def _cast(node: exp.Expr, kind: str) -> exp.Expr:
    return exp.Cast(this=node.copy(), to=exp.DataType.build(kind, dialect="duckdb"))
