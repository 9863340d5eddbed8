"""Parts of which rules build expressions."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

Rule = Callable[[exp.Expr], exp.Expr]


def call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[*arguments])


def cast(node: exp.Expr, kind: str) -> exp.Expr:
    to = exp.DataType.build(kind, dialect="duckdb")
    converted = exp.Cast(this=node, to=to)
    converted.type = to
    return converted


def double(node: exp.Expr) -> exp.Expr:
    """Return a value as a double. What counts as one may be a decimal in Spark."""
    return cast(node, "DOUBLE")


def special_double(name: str) -> exp.Expr:
    return cast(exp.Literal.string(name), "DOUBLE")


def zero() -> exp.Expr:
    return exp.Literal.number("0E0")


def signed_zero(value: exp.Expr) -> exp.Expr:
    return exp.Mul(this=in_parens(value), expression=zero())


def in_parens(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node.copy())


def choice(*branches: tuple[exp.Expr, exp.Expr], default: exp.Expr) -> exp.Expr:
    ifs = [exp.If(this=condition, true=value) for condition, value in branches]
    return exp.Paren(this=exp.Case(ifs=ifs, default=default))


def failing(detail: str) -> exp.Expr:
    """Return an expression that fails as soon as it is evaluated."""
    return cast(call("raise_error", exp.Literal.string(detail)), "DOUBLE")
