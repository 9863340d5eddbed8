"""Functions of texts."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from analytics.sql.spark import letters
from analytics.sql.spark.grammar import Untranslatable
from analytics.sql.spark.rules.kinds import Kind, is_text_constant, kind_of, require, whole_number
from analytics.sql.spark.rules.parts import Rule, call, cast


def _text(node: exp.Expr) -> exp.Expr:
    """Check that all operands are texts."""
    for operand in node.iter_expressions():
        require(operand, {Kind.TEXT})
    return node


def _length(node: exp.Expr) -> exp.Expr:
    """It has 32 bits in Spark."""
    return cast(_text(node).copy(), "BIGINT")


def _lower(node: exp.Expr) -> exp.Expr:
    require(node.this, {Kind.TEXT})
    return mapped_letters(node.this, letters.lower())


def _upper(node: exp.Expr) -> exp.Expr:
    require(node.this, {Kind.TEXT})
    return mapped_letters(node.this, letters.upper())


def mapped_letters(value: exp.Expr, table: tuple[str, str]) -> exp.Expr:
    source, target = map(exp.Literal.string, table)
    return call("translate", value, source, target)


def _substring(node: exp.Expr) -> exp.Expr:
    require(node.this, {Kind.TEXT})
    start, length = node.args.get("start"), node.args.get("length")
    if start is None or whole_number(start, "a substring") < 1:
        raise Untranslatable("Substrings that start before the first character are not on Spark.")
    if length is not None:
        whole_number(length, "a substring")
    return node


def _end_of_text(node: exp.Expr) -> exp.Expr:
    require(node.this, {Kind.TEXT})
    count = whole_number(node.expression, "left and right")
    name = "left" if isinstance(node, exp.Left) else "right"
    return call(name, node.this, exp.Literal.number(count))


def _replace(node: exp.Expr) -> exp.Expr:
    _text(node)
    old, new = node.expression, node.args["replacement"]
    if not is_text_constant(old) or not is_text_constant(new) or not old.name:
        raise Untranslatable("replace() needs constant texts on Spark.")
    if len(new.name) > len(old.name):
        raise Untranslatable("replace() by longer texts is not available on Spark.")
    return node


def _call_with_text(name: str) -> Rule:
    def rule(node: exp.Expr) -> exp.Expr:
        _text(node)
        return call(name, node.this, node.expression)

    return rule


def _position(node: exp.Expr) -> exp.Expr:
    _text(node)
    return cast(call("instr", node.this, node.args["substr"]), "BIGINT")


def _concatenate(node: exp.Expr) -> exp.Expr:
    for part in ("this", "expression"):
        operand = node.args[part]
        require(operand, {Kind.TEXT, Kind.INTEGER, Kind.BOOLEAN})
        if kind_of(operand) is not Kind.TEXT:
            node.set(part, cast(operand, "TEXT"))
    return node


RULES: Mapping[type[exp.Expr], Rule] = {
    exp.Length: _length,
    exp.MD5: _text,
    exp.Lower: _lower,
    exp.Upper: _upper,
    exp.Substring: _substring,
    **dict.fromkeys((exp.Left, exp.Right), _end_of_text),
    exp.Replace: _replace,
    exp.StartsWith: _call_with_text("startswith"),
    exp.EndsWith: _call_with_text("endswith"),
    exp.Contains: _call_with_text("contains"),
    exp.StrPosition: _position,
    exp.Trim: _text,
    exp.DPipe: _concatenate,
}
