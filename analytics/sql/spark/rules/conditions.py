"""Comparisons, and choices between values."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from analytics.sql.spark.grammar import Untranslatable
from analytics.sql.spark.rules.kinds import NULLS, aligned, kind_of, same_kind
from analytics.sql.spark.rules.parts import Rule


def _compare(node: exp.Expr) -> exp.Expr:
    _align(node, ["this", "expression"])
    return node


def _between(node: exp.Expr) -> exp.Expr:
    _align(node, ["this", "low", "high"])
    return node


def _in(node: exp.Expr) -> exp.Expr:
    if node.args.get("query") is not None:
        if not _is_only_filter(node):
            raise Untranslatable("IN with a query is available on Spark in WHERE and HAVING alone.")
        return node
    values = node.expressions
    operands = aligned([node.this, *values])
    node.set("this", operands[0])
    node.set("expressions", operands[1:])
    return node


def _align(node: exp.Expr, names: list[str]) -> None:
    for name, operand in zip(names, aligned([node.args[n] for n in names]), strict=True):
        node.set(name, operand)


def _is_only_filter(node: exp.Expr) -> bool:
    """Whether it makes no difference that Spark's `IN` with a query is false instead of null."""
    parent = _outside_parens(node)
    connectives: type[exp.Expr] = exp.Connector
    if isinstance(parent, exp.Not):
        parent, connectives = _outside_parens(parent), exp.And
    while isinstance(parent, connectives):
        parent = _outside_parens(parent)
    return isinstance(parent, exp.Where | exp.Having)


def _outside_parens(node: exp.Expr) -> exp.Expr | None:
    parent = node.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    return parent


def _case(node: exp.Expr) -> exp.Expr:
    branches = [*(one.args["true"] for one in node.args["ifs"])]
    if (default := node.args.get("default")) is not None:
        branches.append(default)
    same_kind({kind_of(one) for one in branches} - NULLS)
    if node.this is not None:
        conditions = [one.this for one in node.args["ifs"]]
        operands = aligned([node.this, *conditions])
        node.set("this", operands[0])
        for one, condition in zip(node.args["ifs"], operands[1:], strict=True):
            one.set("this", condition)
    return node


def _if(node: exp.Expr) -> exp.Expr:
    if not isinstance(node.parent, exp.Case):
        branches = [node.args["true"], node.args.get("false")]
        same_kind({kind_of(one) for one in branches if one is not None} - NULLS)
    return node


def _alternatives(node: exp.Expr) -> exp.Expr:
    operands = aligned([node.this, *node.expressions])
    node.set("this", operands[0])
    node.set("expressions", operands[1:])
    return node


RULES: Mapping[type[exp.Expr], Rule] = {
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE), _compare),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), _compare),
    exp.Nullif: _compare,
    exp.Between: _between,
    exp.In: _in,
    exp.Case: _case,
    exp.If: _if,
    **dict.fromkeys((exp.Coalesce, exp.Greatest, exp.Least), _alternatives),
}
