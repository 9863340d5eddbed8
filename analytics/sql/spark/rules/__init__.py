"""How expressions are written so that Spark computes what DuckDB computes.

A rule gets a node whose operands are written already, and returns what takes its place. It raises
`Untranslatable` where the two engines would differ. The types are DuckDB's, from before any rule.

kinds        the kinds of values, by which expressions are checked
parts        parts of which rules build expressions
conditions   comparisons, and choices between values
patterns     LIKE
numbers      arithmetic and the functions of numbers
aggregates   aggregates
windows      window functions
texts        functions of texts
times        dates, times, intervals and zones
casts        casts
queries      clauses and combinations of queries
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from analytics.sql.spark.rules import (
    aggregates,
    casts,
    conditions,
    numbers,
    patterns,
    queries,
    texts,
    times,
    windows,
)
from analytics.sql.spark.rules.aggregates import SPREADS
from analytics.sql.spark.rules.parts import Rule

#: What rules write with several copies of an operand.
REPEATING = (
    *(exp.Div, exp.IntDiv, exp.Mod, exp.Ceil, exp.Floor, exp.Round, exp.Sqrt),
    *(exp.Like, exp.ILike),
    *SPREADS,
)
_RULES: Mapping[type[exp.Expr], Rule] = {
    **conditions.RULES,
    **patterns.RULES,
    **numbers.RULES,
    **aggregates.RULES,
    **windows.RULES,
    **texts.RULES,
    **times.RULES,
    **casts.RULES,
    **queries.RULES,
}


def rewritten(node: exp.Expr) -> exp.Expr:
    """Return what takes the place of a node whose operands are rewritten already."""
    rule = _RULES.get(type(node))
    if rule is None:
        return node
    kind = node.type
    new = rule(node)
    if new.type is None or new.type.this == exp.DataType.Type.UNKNOWN:
        new.type = kind
    return new
