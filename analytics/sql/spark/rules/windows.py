"""Window functions."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from analytics.sql.spark.grammar import Untranslatable
from analytics.sql.spark.rules.aggregates import finite
from analytics.sql.spark.rules.kinds import NULLS, kind_of, whole_number, wrong_types
from analytics.sql.spark.rules.parts import Rule, cast


def _window(node: exp.Expr) -> exp.Expr:
    """Spark has no FILTER of window functions: the other rows' values become null."""
    function = node.this
    if isinstance(function, exp.Filter):
        aggregate, condition = function.this, function.expression.this
        if not isinstance(aggregate, exp.Count | exp.Sum | exp.Avg | exp.Min | exp.Max):
            raise wrong_types(function)
        if isinstance(aggregate.this, exp.Distinct):
            raise wrong_types(function)
        value = aggregate.this
        if isinstance(value, exp.Star):
            value = exp.Literal.number(1)
        aggregate.set("this", exp.Case(ifs=[exp.If(this=condition, true=value)]))
        node.set("this", aggregate)
    if isinstance(function, exp.RowNumber | exp.Rank | exp.DenseRank | exp.Ntile):
        # They have 32 bits in Spark.
        return cast(node.copy(), "BIGINT")
    return finite(node, function)


def _neighbour(node: exp.Expr) -> exp.Expr:
    """DuckDB casts the default to the type of the value, Spark both to a common one."""
    kinds = {kind_of(node.args.get(part)) for part in ("this", "default") if node.args.get(part)}
    if len(kinds - NULLS) > 1:
        raise Untranslatable("lag() and lead() need a default of the same type on Spark.")
    return node


def _frame(node: exp.Expr) -> exp.Expr:
    if node.args.get("kind") not in (None, "ROWS", "RANGE", "rows", "range"):
        raise Untranslatable("Window frames of GROUPS are not available on Spark.")
    for part in ("start", "end"):
        bound = node.args.get(part)
        if isinstance(bound, exp.Expr):
            whole_number(bound, "a window frame")
    return node


RULES: Mapping[type[exp.Expr], Rule] = {
    exp.Window: _window,
    **dict.fromkeys((exp.Lag, exp.Lead), _neighbour),
    exp.WindowSpec: _frame,
}
