"""Casts."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from analytics.sql.spark.constants import date_of, time_of
from analytics.sql.spark.grammar import Untranslatable
from analytics.sql.spark.rules.kinds import KINDS, NUMBERS, Kind, is_text_constant, kind_of
from analytics.sql.spark.rules.parts import Rule, cast


def _convert(node: exp.Expr) -> exp.Expr:
    target = KINDS.get(node.args["to"].this, Kind.UNKNOWN)
    value = node.this
    if isinstance(value, exp.Literal) and not value.is_string and target in NUMBERS:
        return node
    if is_text_constant(value):
        if target is Kind.DATE:
            return date_of(value.name)
        if target is Kind.TIME:
            return time_of(value.name)
    source = kind_of(value)
    if source not in _CONVERTED.get(target, ()):
        raise Untranslatable(f"Casts of {source} to {target} are not available on Spark.")
    if target is Kind.TIME:
        return cast(value, "TIMESTAMPTZ")
    return node


_CONVERTED: Mapping[Kind, frozenset[Kind]] = {
    Kind.INTEGER: frozenset({Kind.INTEGER, Kind.BOOLEAN, Kind.NULL}),
    Kind.DECIMAL: frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.NULL}),
    Kind.DOUBLE: frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE, Kind.NULL}),
    Kind.TEXT: frozenset({Kind.TEXT, Kind.INTEGER, Kind.BOOLEAN, Kind.DATE, Kind.NULL}),
    Kind.BOOLEAN: frozenset({Kind.BOOLEAN, Kind.NULL}),
    Kind.DATE: frozenset({Kind.DATE, Kind.TIME, Kind.NULL}),
    Kind.TIME: frozenset({Kind.DATE, Kind.TIME, Kind.NULL}),
}


RULES: Mapping[type[exp.Expr], Rule] = {
    exp.Cast: _convert,
}
