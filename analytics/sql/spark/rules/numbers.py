"""Arithmetic and the functions of numbers."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from analytics.sql.spark.grammar import Untranslatable
from analytics.sql.spark.rules.kinds import (
    NULLS,
    NUMBERS,
    TIMES,
    Kind,
    kind_of,
    require,
    whole_number,
    wrong_types,
)
from analytics.sql.spark.rules.parts import (
    Rule,
    call,
    cast,
    choice,
    double,
    failing,
    in_parens,
    signed_zero,
    special_double,
    zero,
)
from analytics.sql.spark.rules.times import DAYS

_MAX_DECIMALS = 15


def _add(node: exp.Expr) -> exp.Expr:
    operands = (node.this, node.expression)
    kinds = {*map(kind_of, operands)}
    if kinds - NULLS <= NUMBERS:
        return node
    first, second = operands if kind_of(node.this) in TIMES else operands[::-1]
    if isinstance(second, exp.Interval) and kind_of(first) in TIMES:
        if kind_of(first) is Kind.DATE and second.args["unit"].name not in DAYS:
            raise Untranslatable("Dates with times of day added to them are not on Spark.")
        return node
    if kind_of(first) is Kind.DATE and kind_of(second) is Kind.INTEGER:
        sign = -1 if isinstance(node, exp.Sub) else 1
        if sign < 0 and first is not node.this:
            raise wrong_types(node)
        days = exp.Paren(this=exp.Neg(this=exp.Paren(this=second))) if sign < 0 else second
        return call("date_add", first, cast(days, "INT"))
    if isinstance(node, exp.Sub) and kinds == {Kind.DATE}:
        return cast(call("datediff", *operands), "BIGINT")
    raise wrong_types(node)


def _multiply(node: exp.Expr) -> exp.Expr:
    require(node.this, NUMBERS)
    require(node.expression, NUMBERS)
    return node


def _divide(node: exp.Expr) -> exp.Expr:
    """Division by zero is infinite in DuckDB, and an error in Spark."""
    _multiply(node)
    by = node.expression
    dividend, divisor = double(node.this), double(by)
    quotient = exp.Div(this=exp.Paren(this=dividend), expression=exp.Paren(this=divisor))
    if _is_nonzero(by):
        return exp.Paren(this=quotient)
    infinite: exp.Expr = exp.Case(
        ifs=[
            exp.If(
                this=exp.EQ(
                    this=cast(divisor.copy(), "TEXT"), expression=exp.Literal.string("-0.0")
                ),
                true=special_double("-Infinity"),
            )
        ],
        default=special_double("Infinity"),
    )
    if kind_of(by) is Kind.INTEGER:
        infinite = special_double("Infinity")
    return choice(
        (
            exp.EQ(this=divisor.copy(), expression=zero()),
            exp.Mul(this=exp.Paren(this=dividend.copy()), expression=exp.Paren(this=infinite)),
        ),
        default=quotient,
    )


def _whole_division(node: exp.Expr) -> exp.Expr:
    """Division of integers by zero is null in DuckDB, and an error in Spark."""
    for operand in (node.this, node.expression):
        require(operand, {Kind.INTEGER})
    name = "DIV" if isinstance(node, exp.IntDiv) else "%"
    by = node.expression
    plain: exp.Expr
    if name == "DIV":
        plain = exp.IntDiv(this=exp.Paren(this=node.this), expression=exp.Paren(this=by))
    else:
        plain = exp.Mod(this=exp.Paren(this=node.this), expression=exp.Paren(this=by))
    branches: list[tuple[exp.Expr, exp.Expr]] = []
    if not _is_nonzero(by):
        is_zero = exp.EQ(this=in_parens(by), expression=exp.Literal.number(0))
        branches.append((is_zero, exp.null()))
    if name == "DIV":
        # It has 64 bits in Spark.
        plain = cast(plain, str(node.type.this.value)) if node.type else plain
    elif not _is_positive(by):
        # The least integer has no remainder by -1 in DuckDB, as it has no quotient.
        is_minus_one = exp.EQ(this=in_parens(by), expression=exp.Literal.number(-1))
        negated = exp.Paren(this=exp.Neg(this=in_parens(node.this)))
        remainder = exp.Mod(this=negated, expression=exp.Literal.number(1))
        branches.append((is_minus_one, remainder))
    return choice(*branches, default=plain) if branches else exp.Paren(this=plain)


def _negate(node: exp.Expr) -> exp.Expr:
    require(node.this, NUMBERS)
    return node


def _integers(node: exp.Expr) -> exp.Expr:
    for operand in (node.this, node.expression):
        require(operand, {Kind.INTEGER})
    return node


def _round_up(node: exp.Expr) -> exp.Expr:
    """The result is a double, whose zero has the sign of the argument."""
    require(node.this, {Kind.DOUBLE})
    value = double(node.this)
    to_zero: exp.Expr
    if isinstance(node, exp.Ceil):
        to_zero = exp.And(
            this=exp.GT(this=in_parens(value), expression=exp.Literal.number(-1)),
            expression=exp.LTE(this=in_parens(value), expression=exp.Literal.number(0)),
        )
    else:
        to_zero = exp.EQ(this=in_parens(value), expression=exp.Literal.number(0))
    is_small = exp.LT(this=exp.Abs(this=value.copy()), expression=exp.Literal.number("1E15"))
    return choice(
        (to_zero, signed_zero(value)),
        (is_small, double(type(node)(this=value.copy()))),
        default=value.copy(),
    )


def _round(node: exp.Expr) -> exp.Expr:
    """DuckDB multiplies, rounds to a whole number and divides."""
    places = node.args.get("decimals")
    require(node.this, {Kind.DOUBLE})
    value = double(node.this)
    digits = 0 if places is None else whole_number(places, "ROUND")
    if digits > _MAX_DECIMALS:
        raise Untranslatable("ROUND to more than 15 places is not available on Spark.")
    factor = exp.Literal.number(f"1E{digits}")
    scaled = exp.Mul(this=in_parens(value), expression=factor)
    size = exp.Abs(this=scaled)
    rounded = exp.Div(this=call("round", scaled.copy()), expression=factor.copy())
    return choice(
        (exp.Not(this=exp.LT(this=size, expression=special_double("Infinity"))), value.copy()),
        (exp.LT(this=size.copy(), expression=exp.Literal.number("5E-1")), signed_zero(value)),
        default=rounded,
    )


def _square_root(node: exp.Expr) -> exp.Expr:
    """Negative numbers have no root in DuckDB; in Spark it is NaN."""
    require(node.this, NUMBERS)
    value = double(node.this)
    failure = failing("Negative numbers have no square root.")
    is_negative = exp.LT(this=in_parens(value), expression=zero())
    return choice((is_negative, failure), default=exp.Sqrt(this=value.copy()))


def _is_nonzero(node: exp.Expr) -> bool:
    while isinstance(node, exp.Paren | exp.Neg | exp.Cast):
        node = node.this
    if not isinstance(node, exp.Literal) or node.is_string:
        return False
    return float(node.name) != 0.0


def _is_positive(node: exp.Expr) -> bool:
    while isinstance(node, exp.Paren | exp.Cast):
        node = node.this
    return isinstance(node, exp.Literal) and _is_nonzero(node)


RULES: Mapping[type[exp.Expr], Rule] = {
    **dict.fromkeys((exp.Add, exp.Sub), _add),
    exp.Mul: _multiply,
    exp.Div: _divide,
    **dict.fromkeys((exp.IntDiv, exp.Mod), _whole_division),
    **dict.fromkeys((exp.Neg, exp.Abs), _negate),
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr), _integers),
    **dict.fromkeys((exp.Ceil, exp.Floor), _round_up),
    exp.Round: _round,
    exp.Sqrt: _square_root,
}
