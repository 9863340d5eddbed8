"""LIKE, by conditions whose time does not grow with a power of the text."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from analytics.sql.spark import letters
from analytics.sql.spark.grammar import Untranslatable
from analytics.sql.spark.rules.kinds import Kind, is_text_constant, require
from analytics.sql.spark.rules.parts import Rule, call, choice
from analytics.sql.spark.rules.texts import mapped_letters

_MAX_PARTS = 8


def _like(node: exp.Expr) -> exp.Expr:
    """Spark matches by regular expressions, whose time must not grow with a power of the text."""
    pattern = node.expression
    require(node.this, {Kind.TEXT})
    if not is_text_constant(pattern):
        raise Untranslatable("LIKE without a constant pattern is not available on Spark.")
    text = pattern.name
    if len(text) > 1 and text[0] == text[-1] == "%" and "_" not in text:
        contains = _contains_in_order(node.this, [part for part in text.split("%") if part])
        return exp.Paren(this=exp.Not(this=contains)) if node.args.get("negate") else contains
    if text.count("%") > 1:
        raise Untranslatable(f"The pattern {text[:40]!r} is not available on Spark.")
    # A backslash escapes nothing in DuckDB, and the next character in Spark.
    node.set("expression", exp.Literal.string(text.replace("\\", "\\\\")))
    return node


def _contains_in_order(value: exp.Expr, parts: list[str]) -> exp.Expr:
    """Return whether texts occur in a value one after another: it suffices to find the first
    place of each.
    """
    if len(parts) > _MAX_PARTS:
        raise Untranslatable("LIKE with so many texts is not available on Spark.")
    condition: exp.Expr = exp.Boolean(this=True)
    start: exp.Expr = exp.Literal.number(1)
    for part in parts:
        place = call("locate", exp.Literal.string(part), value.copy(), start)
        occurs = exp.GT(this=place, expression=exp.Literal.number(0))
        condition = exp.And(this=condition, expression=occurs)
        start = exp.Add(this=place.copy(), expression=exp.Literal.number(len(part)))
    # `locate` is 0 for a start that is null.
    is_null = exp.Is(this=value.copy(), expression=exp.null())
    return choice((is_null, exp.null()), default=condition)


def _like_in_any_case(node: exp.Expr) -> exp.Expr:
    require(node.this, {Kind.TEXT})
    pattern, table = node.expression, letters.lower()
    if is_text_constant(pattern):
        pattern = exp.Literal.string(pattern.name.translate(str.maketrans(*table)))
    negated = node.args.get("negate")
    like = exp.Like(this=mapped_letters(node.this, table), expression=pattern, negate=negated)
    like.this.type = node.this.type
    return _like(like)


RULES: Mapping[type[exp.Expr], Rule] = {
    exp.Like: _like,
    exp.ILike: _like_in_any_case,
}
