"""Clauses and combinations of queries."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from analytics.sql.spark.grammar import Untranslatable
from analytics.sql.spark.rules.kinds import NULLS, Kind, is_text_constant, kind_of, same_kind
from analytics.sql.spark.rules.parts import Rule


def _group(node: exp.Expr) -> exp.Expr:
    """The driver notices that only a whole statement has no rows."""
    if has_empty_set(node) and (node.parent is None or node.parent.parent is not None):
        raise Untranslatable("ROLLUP and CUBE within queries are not available on Spark.")
    return node


def has_empty_set(group: exp.Expr) -> bool:
    """Whether rows are also grouped by nothing.

    If there are none, DuckDB has a row for that set, and Spark has not.
    """
    sets = [one for part in group.find_all(exp.GroupingSets) for one in part.expressions]
    has_empty = any(isinstance(one, exp.Tuple) and not one.expressions for one in sets)
    return has_empty or any(group.find_all(exp.Rollup, exp.Cube))


def _order(node: exp.Expr) -> exp.Expr:
    """A name within an expression is that of a column in DuckDB, before that of a result."""
    select = node.parent
    if not isinstance(select, exp.Select):
        return node
    results = {one.alias_or_name: one.unalias() for one in select.selects}
    for ordered in node.expressions:
        for column in ordered.find_all(exp.Column):
            result = results.get(column.name)
            is_whole = column is ordered.this or column.table
            if not is_whole and not (isinstance(result, exp.Column) and result.name == column.name):
                raise Untranslatable(
                    "Names of results within ORDER BY's expressions are not on Spark."
                )
    return node


def _set_operation(node: exp.Expr) -> exp.Expr:
    """DuckDB makes texts of other values, and Spark the reverse."""
    sides = [side.selects for side in (node.this, node.expression) if isinstance(side, exp.Query)]
    for pair in zip(*sides, strict=False):
        same_kind({*map(_kind_of_result, pair)} - NULLS)
    return node


def _kind_of_result(node: exp.Expr) -> Kind:
    value = node.unalias()
    return Kind.TEXT if is_text_constant(value) else kind_of(value)


def _common_table(node: exp.Expr) -> exp.Expr:
    """MATERIALIZED changes no result."""
    node.set("materialized", None)
    return node


RULES: Mapping[type[exp.Expr], Rule] = {
    **dict.fromkeys((exp.Union, exp.Intersect, exp.Except), _set_operation),
    exp.Group: _group,
    exp.Order: _order,
    exp.CTE: _common_table,
}
