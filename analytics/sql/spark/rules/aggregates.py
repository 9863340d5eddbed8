"""Aggregates."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from analytics.sql.spark.grammar import Untranslatable
from analytics.sql.spark.rules.kinds import NUMBERS, Kind, kind_of, require, wrong_types
from analytics.sql.spark.rules.parts import (
    Rule,
    call,
    cast,
    choice,
    double,
    failing,
    special_double,
)

SPREADS = (exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevSamp, exp.StddevPop)

_WIDE = "DECIMAL(38, 0)"


def _sum(node: exp.Expr) -> exp.Expr:
    """Sums of integers have 128 bits in DuckDB."""
    value = _argument(node)
    require(value, NUMBERS)
    if kind_of(value) is Kind.INTEGER:
        is_plain = value is node.this and not isinstance(node.parent, exp.Filter | exp.Window)
        _set_argument(node, _widened(value) if is_plain else cast(value, _WIDE))
    return node


def _widened(value: exp.Expr) -> exp.Expr:
    """Return an integer with 128 bits. DuckDB adds constants to the sum, not to each value."""
    inner = value.unnest()
    if isinstance(inner, exp.Add) and any(map(_is_constant, (inner.this, inner.expression))):
        operands = _widened(inner.this), _widened(inner.expression)
        return exp.Paren(this=exp.Add(this=operands[0], expression=operands[1]))
    return cast(value, _WIDE)


def _is_constant(node: exp.Expr) -> bool:
    while isinstance(node, exp.Paren | exp.Neg | exp.Cast):
        node = node.this
    return isinstance(node, exp.Literal)


def _of_doubles(node: exp.Expr) -> exp.Expr:
    value = _argument(node)
    require(value, NUMBERS)
    _set_argument(node, double(value))
    return node if isinstance(node.parent, exp.Filter | exp.Window) else finite(node, node)


def _filter(node: exp.Expr) -> exp.Expr:
    return node if isinstance(node.parent, exp.Window) else finite(node, node.this)


def finite(node: exp.Expr, aggregate: exp.Expr) -> exp.Expr:
    """Variances and deviations that are infinite or no number are errors in DuckDB."""
    if not isinstance(aggregate, SPREADS):
        return node
    is_finite = exp.LT(this=exp.Abs(this=node.copy()), expression=special_double("Infinity"))
    is_null = exp.Is(this=node.copy(), expression=exp.null())
    return choice(
        (exp.Or(this=is_null, expression=is_finite), node.copy()),
        default=failing("The variance is out of the range of its type."),
    )


def _count(node: exp.Expr) -> exp.Expr:
    if isinstance(node.this, exp.Distinct) and len(node.this.expressions) != 1:
        raise Untranslatable("count(DISTINCT) of several values is not available on Spark.")
    return node


def _extreme(node: exp.Expr) -> exp.Expr:
    if kind_of(_argument(node)) is Kind.UNKNOWN:
        raise wrong_types(node)
    return node


def _argument(node: exp.Expr) -> exp.Expr:
    inner = node.this
    if isinstance(inner, exp.Distinct):
        if len(inner.expressions) != 1:
            raise wrong_types(node)
        only: exp.Expr = inner.expressions[0]
        return only
    return inner  # type: ignore[no-any-return]


def _set_argument(node: exp.Expr, value: exp.Expr) -> None:
    if isinstance(node.this, exp.Distinct):
        node.this.set("expressions", [value])
    else:
        node.set("this", value)


def _grouping(node: exp.Expr) -> exp.Expr:
    if len(node.expressions) != 1:
        raise Untranslatable("grouping() of several columns is not available on Spark.")
    return cast(call("grouping", node.expressions[0]), "BIGINT")


RULES: Mapping[type[exp.Expr], Rule] = {
    exp.Sum: _sum,
    **dict.fromkeys((exp.Avg, exp.Variance, exp.VariancePop), _of_doubles),
    **dict.fromkeys((exp.Stddev, exp.StddevSamp, exp.StddevPop), _of_doubles),
    exp.Count: _count,
    **dict.fromkeys((exp.Min, exp.Max), _extreme),
    exp.Filter: _filter,
    exp.Grouping: _grouping,
}
