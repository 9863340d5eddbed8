"""The syntax that is translated for Spark: classes of sqlglot's tree, each with its parts.

A class or a part that is not listed is rejected, so a construct that a later version of sqlglot
parses is rejected too.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

#: Parts that only repeat what DuckDB's dialect always does.
_DEFAULTS = frozenset({"safe", "coalesce", "big_int", "ignore_nulls"})


def _parts(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ONE, _TWO = _parts("this"), _parts("this expression")
_QUERIES: Mapping[type[exp.Expr], frozenset[str]] = {
    exp.Select: _parts(
        "expressions from_ joins where group having qualify order limit offset distinct with_"
    ),
    **dict.fromkeys(
        (exp.Union, exp.Intersect, exp.Except),
        _parts("this expression distinct order limit offset with_"),
    ),
    exp.With: _parts("expressions"),
    exp.CTE: _parts("this alias materialized"),
    exp.Subquery: _parts("this alias order limit offset with_"),
    exp.From: _ONE,
    # `qualify` replaces `using` by a condition.
    exp.Join: _parts("this on using side kind"),
    exp.Table: _parts("this alias"),
    exp.TableAlias: _parts("this columns"),
    exp.Where: _ONE,
    exp.Group: _parts("expressions all rollup cube grouping_sets"),
    exp.Rollup: _parts("expressions"),
    exp.Cube: _parts("expressions"),
    exp.GroupingSets: _parts("expressions"),
    exp.Having: _ONE,
    exp.Qualify: _ONE,
    exp.Order: _parts("expressions"),
    exp.Ordered: _parts("this desc nulls_first"),
    exp.Limit: _parts("expression"),
    exp.Offset: _parts("expression"),
    exp.Distinct: _parts("expressions"),
    exp.Alias: _parts("this alias"),
    exp.Identifier: _parts("this quoted"),
    exp.Column: _parts("this table"),
    exp.Star: _parts(""),
    exp.Tuple: _parts("expressions"),
}
_EXPRESSIONS: Mapping[type[exp.Expr], frozenset[str]] = {
    exp.Literal: _parts("this is_string"),
    exp.Boolean: _ONE,
    exp.Null: _parts(""),
    exp.Paren: _ONE,
    exp.Not: _ONE,
    exp.Neg: _ONE,
    exp.And: _TWO,
    exp.Or: _TWO,
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE), _TWO),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), _TWO),
    exp.Is: _TWO,
    exp.In: _parts("this expressions query"),
    exp.Between: _parts("this low high"),
    exp.Like: _parts("this expression negate"),
    exp.ILike: _parts("this expression negate"),
    exp.Exists: _ONE,
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod), _TWO),
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr), _TWO),
    exp.Case: _parts("this ifs default"),
    exp.If: _parts("this true false"),
    exp.Coalesce: _parts("this expressions"),
    exp.Nullif: _TWO,
    exp.Greatest: _parts("this expressions"),
    exp.Least: _parts("this expressions"),
    exp.Cast: _parts("this to"),
    exp.DataType: _parts("this expressions nested"),
    exp.DataTypeParam: _ONE,
    exp.Interval: _parts("this unit"),
    exp.Var: _ONE,
}
_FUNCTIONS: Mapping[type[exp.Expr], frozenset[str]] = {
    exp.Abs: _ONE,
    exp.Ceil: _ONE,
    exp.Floor: _ONE,
    exp.Round: _parts("this decimals"),
    exp.Sqrt: _ONE,
    exp.Length: _ONE,
    exp.Lower: _ONE,
    exp.Upper: _ONE,
    exp.Substring: _parts("this start length"),
    exp.Left: _TWO,
    exp.Right: _TWO,
    exp.Replace: _parts("this expression replacement"),
    exp.StartsWith: _TWO,
    exp.EndsWith: _TWO,
    exp.Contains: _TWO,
    exp.StrPosition: _parts("this substr"),
    exp.Trim: _parts("this expression position"),
    exp.DPipe: _TWO,
    exp.MD5: _ONE,
    exp.Extract: _TWO,
    **dict.fromkeys((exp.Year, exp.Quarter, exp.Month, exp.Day), _ONE),
    exp.TimestampTrunc: _parts("this unit"),
    exp.DateTrunc: _parts("this unit"),
    exp.AtTimeZone: _parts("this zone"),
}
_AGGREGATES: Mapping[type[exp.Expr], frozenset[str]] = {
    **dict.fromkeys((exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max), _ONE),
    **dict.fromkeys((exp.LogicalAnd, exp.LogicalOr), _ONE),
    **dict.fromkeys((exp.Variance, exp.VariancePop, exp.Stddev), _ONE),
    **dict.fromkeys((exp.StddevSamp, exp.StddevPop), _ONE),
    exp.Grouping: _parts("expressions"),
    exp.Filter: _TWO,
    exp.Window: _parts("this partition_by order spec over"),
    exp.WindowSpec: _parts("kind start start_side end end_side"),
    **dict.fromkeys((exp.RowNumber, exp.Rank, exp.DenseRank), _parts("")),
    **dict.fromkeys((exp.PercentRank, exp.CumeDist), _parts("")),
    exp.Ntile: _ONE,
    exp.Lag: _parts("this offset default"),
    exp.Lead: _parts("this offset default"),
    exp.FirstValue: _ONE,
    exp.LastValue: _ONE,
    exp.NthValue: _parts("this offset"),
}
PARTS: Mapping[type[exp.Expr], frozenset[str]] = {
    **_QUERIES,
    **_EXPRESSIONS,
    **_FUNCTIONS,
    **_AGGREGATES,
}


class Untranslatable(Exception):
    """The statement has a part that Spark does not execute in the same way."""


def check(tree: exp.Expr) -> None:
    """Raise `Untranslatable` for a construct that is not in the lists."""
    for node in tree.walk():
        parts = PARTS.get(type(node))
        if parts is None:
            raise Untranslatable(f"{_name(node)} is not available on Spark.")
        for part, value in node.args.items():
            if value in (None, False, [], "") or part in parts or part in _DEFAULTS:
                continue
            raise Untranslatable(
                f"{part.strip('_').upper()} of {_name(node)} is not available on Spark."
            )


def _name(node: exp.Expr) -> str:
    """Return what users call a construct."""
    if isinstance(node, exp.Anonymous):
        return f"The function {str(node.this)[:63]!r}"
    if isinstance(node, exp.Func):
        return f"The function {node.sql_name().lower()!r}"
    return type(node).__name__
