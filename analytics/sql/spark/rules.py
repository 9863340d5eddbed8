"""How expressions are written so that Spark computes what DuckDB computes.

A rule gets a node whose operands are written already, and returns what takes its place. It raises
`Untranslatable` where the two engines would differ. The types are DuckDB's, from before any rule.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from zoneinfo import available_timezones

from sqlglot import exp

from analytics.sql.spark import letters
from analytics.sql.spark.constants import date_of, time_of
from analytics.sql.spark.grammar import Untranslatable

Rule = Callable[[exp.Expr], exp.Expr]

_T = exp.DataType.Type
#: Names without a region are abbreviations, which Java does not have or knows no history of.
_ZONE = re.compile(r"UTC\Z|[A-Z][A-Za-z]{0,31}/[A-Za-z0-9_+/-]{1,63}\Z")
#: Zones whose rules differ between DuckDB's and Java's copies of the database of zones.
_DISPUTED_ZONES = frozenset({"Europe/Chisinau", "Europe/Tiraspol"})
_WHOLE = re.compile(r"\d{1,9}\Z")
_MAX_DECIMALS = 15
_MAX_PARTS = 8


class Kind(StrEnum):
    """What two values must have in common to be compared."""

    INTEGER = "integer"
    DECIMAL = "decimal"
    DOUBLE = "double"
    TEXT = "text"
    BOOLEAN = "boolean"
    DATE = "date"
    TIME = "time"
    NULL = "null"
    UNKNOWN = "unknown"


_KINDS: Mapping[object, Kind] = {
    **dict.fromkeys((_T.TINYINT, _T.SMALLINT, _T.INT, _T.BIGINT, _T.INT128), Kind.INTEGER),
    _T.DECIMAL: Kind.DECIMAL,
    _T.DOUBLE: Kind.DOUBLE,
    **dict.fromkeys((_T.VARCHAR, _T.TEXT), Kind.TEXT),
    _T.BOOLEAN: Kind.BOOLEAN,
    _T.DATE: Kind.DATE,
    **dict.fromkeys((_T.TIMESTAMP, _T.TIMESTAMPTZ), Kind.TIME),
    _T.NULL: Kind.NULL,
}
_NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE})
_TIMES = frozenset({Kind.DATE, Kind.TIME})
_ANY = frozenset({Kind.NULL})


def kind_of(node: exp.Expr | None) -> Kind:
    if isinstance(node, exp.Null):
        return Kind.NULL
    if node is not None and node.type is not None and node.type.this in _KINDS:
        return _KINDS[node.type.this]
    return kind_of(node.this) if isinstance(node, exp.Paren | exp.Alias) else Kind.UNKNOWN


def rewritten(node: exp.Expr) -> exp.Expr:
    """Return what takes the place of a node whose operands are rewritten already."""
    rule = _RULES.get(type(node))
    if rule is None:
        return node
    kind = node.type
    new = rule(node)
    if new.type is None or new.type.this == _T.UNKNOWN:
        new.type = kind
    return new


#: What rules write with several copies of an operand.
REPEATING = (
    *(exp.Div, exp.IntDiv, exp.Mod, exp.Ceil, exp.Floor, exp.Round, exp.Sqrt),
    *(exp.Like, exp.ILike),
)


# Comparisons


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
    operands = _aligned([node.this, *values])
    node.set("this", operands[0])
    node.set("expressions", operands[1:])
    return node


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


def _align(node: exp.Expr, names: list[str]) -> None:
    for name, operand in zip(names, _aligned([node.args[n] for n in names]), strict=True):
        node.set(name, operand)


def _aligned(operands: list[exp.Expr]) -> list[exp.Expr]:
    """Return operands of one kind: texts beside dates and times become these."""
    kinds = {kind_of(one) for one in operands if not _is_text_constant(one)} - _ANY
    if kinds and kinds <= _TIMES:
        of_text = date_of if kinds == {Kind.DATE} else time_of
        return [of_text(one.name) if _is_text_constant(one) else one for one in operands]
    if any(_is_text_constant(one) for one in operands):
        kinds |= {Kind.TEXT}
    _same_kind(kinds)
    return operands


def _same_kind(kinds: set[Kind]) -> None:
    if Kind.UNKNOWN in kinds or not (len(kinds) <= 1 or kinds <= _NUMBERS or kinds <= _TIMES):
        raise Untranslatable("Values of different types in one expression need casts on Spark.")


def _is_text_constant(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and bool(node.is_string)


def _like(node: exp.Expr) -> exp.Expr:
    """Spark matches by regular expressions, whose time must not grow with a power of the text."""
    pattern = node.expression
    _require(node.this, {Kind.TEXT})
    if not _is_text_constant(pattern):
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
        place = _call("locate", exp.Literal.string(part), value.copy(), start)
        occurs = exp.GT(this=place, expression=exp.Literal.number(0))
        condition = exp.And(this=condition, expression=occurs)
        start = exp.Add(this=place.copy(), expression=exp.Literal.number(len(part)))
    # `locate` is 0 for a start that is null.
    is_null = exp.Is(this=value.copy(), expression=exp.null())
    return _choice((is_null, exp.null()), default=condition)


def _like_in_any_case(node: exp.Expr) -> exp.Expr:
    _require(node.this, {Kind.TEXT})
    pattern, table = node.expression, letters.lower()
    if _is_text_constant(pattern):
        pattern = exp.Literal.string(pattern.name.translate(str.maketrans(*table)))
    negated = node.args.get("negate")
    like = exp.Like(this=_letters(node.this, table), expression=pattern, negate=negated)
    like.this.type = node.this.type
    return _like(like)


# Choices


def _case(node: exp.Expr) -> exp.Expr:
    branches = [*(one.args["true"] for one in node.args["ifs"])]
    if (default := node.args.get("default")) is not None:
        branches.append(default)
    _same_kind({kind_of(one) for one in branches} - _ANY)
    if node.this is not None:
        conditions = [one.this for one in node.args["ifs"]]
        aligned = _aligned([node.this, *conditions])
        node.set("this", aligned[0])
        for one, condition in zip(node.args["ifs"], aligned[1:], strict=True):
            one.set("this", condition)
    return node


def _if(node: exp.Expr) -> exp.Expr:
    if not isinstance(node.parent, exp.Case):
        branches = [node.args["true"], node.args.get("false")]
        _same_kind({kind_of(one) for one in branches if one is not None} - _ANY)
    return node


def _alternatives(node: exp.Expr) -> exp.Expr:
    operands = _aligned([node.this, *node.expressions])
    node.set("this", operands[0])
    node.set("expressions", operands[1:])
    return node


# Arithmetic


def _add(node: exp.Expr) -> exp.Expr:
    operands = (node.this, node.expression)
    kinds = {*map(kind_of, operands)}
    if kinds - _ANY <= _NUMBERS:
        return node
    first, second = operands if kind_of(node.this) in _TIMES else operands[::-1]
    if isinstance(second, exp.Interval) and kind_of(first) in _TIMES:
        if kind_of(first) is Kind.DATE and second.args["unit"].name not in _DAYS:
            raise Untranslatable("Dates with times of day added to them are not on Spark.")
        return node
    if kind_of(first) is Kind.DATE and kind_of(second) is Kind.INTEGER:
        sign = -1 if isinstance(node, exp.Sub) else 1
        if sign < 0 and first is not node.this:
            raise _operands(node)
        days = exp.Paren(this=exp.Neg(this=exp.Paren(this=second))) if sign < 0 else second
        return _call("date_add", first, _cast(days, "INT"))
    if isinstance(node, exp.Sub) and kinds == {Kind.DATE}:
        return _cast(_call("datediff", *operands), "BIGINT")
    raise _operands(node)


def _multiply(node: exp.Expr) -> exp.Expr:
    _require(node.this, _NUMBERS)
    _require(node.expression, _NUMBERS)
    return node


def _divide(node: exp.Expr) -> exp.Expr:
    """Division by zero is infinite in DuckDB, and an error in Spark."""
    _multiply(node)
    by = node.expression
    dividend, divisor = _double(node.this), _double(by)
    quotient = exp.Div(this=exp.Paren(this=dividend), expression=exp.Paren(this=divisor))
    if _is_nonzero(by):
        return exp.Paren(this=quotient)
    infinite: exp.Expr = exp.Case(
        ifs=[
            exp.If(
                this=exp.EQ(
                    this=_cast(divisor.copy(), "TEXT"), expression=exp.Literal.string("-0.0")
                ),
                true=_special("-Infinity"),
            )
        ],
        default=_special("Infinity"),
    )
    if kind_of(by) is Kind.INTEGER:
        infinite = _special("Infinity")
    return _choice(
        (
            exp.EQ(this=divisor.copy(), expression=_zero()),
            exp.Mul(this=exp.Paren(this=dividend.copy()), expression=exp.Paren(this=infinite)),
        ),
        default=quotient,
    )


def _whole_division(node: exp.Expr) -> exp.Expr:
    """Division of integers by zero is null in DuckDB, and an error in Spark."""
    for operand in (node.this, node.expression):
        _require(operand, {Kind.INTEGER})
    name = "DIV" if isinstance(node, exp.IntDiv) else "%"
    by = node.expression
    plain: exp.Expr
    if name == "DIV":
        plain = exp.IntDiv(this=exp.Paren(this=node.this), expression=exp.Paren(this=by))
    else:
        plain = exp.Mod(this=exp.Paren(this=node.this), expression=exp.Paren(this=by))
    branches: list[tuple[exp.Expr, exp.Expr]] = []
    if not _is_nonzero(by):
        is_zero = exp.EQ(this=_in_parens(by), expression=exp.Literal.number(0))
        branches.append((is_zero, exp.null()))
    if name == "DIV":
        # It has 64 bits in Spark.
        plain = _cast(plain, str(node.type.this.value)) if node.type else plain
    elif not _is_positive(by):
        # The least integer has no remainder by -1 in DuckDB, as it has no quotient.
        is_minus_one = exp.EQ(this=_in_parens(by), expression=exp.Literal.number(-1))
        negated = exp.Paren(this=exp.Neg(this=_in_parens(node.this)))
        remainder = exp.Mod(this=negated, expression=exp.Literal.number(1))
        branches.append((is_minus_one, remainder))
    return _choice(*branches, default=plain) if branches else exp.Paren(this=plain)


def _negate(node: exp.Expr) -> exp.Expr:
    _require(node.this, _NUMBERS)
    return node


def _integers(node: exp.Expr) -> exp.Expr:
    for operand in (node.this, node.expression):
        _require(operand, {Kind.INTEGER})
    return node


def _round_up(node: exp.Expr) -> exp.Expr:
    """The result is a double, whose zero has the sign of the argument."""
    _require(node.this, {Kind.DOUBLE})
    value = _double(node.this)
    to_zero: exp.Expr
    if isinstance(node, exp.Ceil):
        to_zero = exp.And(
            this=exp.GT(this=_in_parens(value), expression=exp.Literal.number(-1)),
            expression=exp.LTE(this=_in_parens(value), expression=exp.Literal.number(0)),
        )
    else:
        to_zero = exp.EQ(this=_in_parens(value), expression=exp.Literal.number(0))
    is_small = exp.LT(this=exp.Abs(this=value.copy()), expression=exp.Literal.number("1E15"))
    return _choice(
        (to_zero, _signed_zero(value)),
        (is_small, _double(type(node)(this=value.copy()))),
        default=value.copy(),
    )


def _round(node: exp.Expr) -> exp.Expr:
    """DuckDB multiplies, rounds to a whole number and divides."""
    places = node.args.get("decimals")
    _require(node.this, {Kind.DOUBLE})
    value = _double(node.this)
    digits = 0 if places is None else _whole_number(places, "ROUND")
    if digits > _MAX_DECIMALS:
        raise Untranslatable("ROUND to more than 15 places is not available on Spark.")
    factor = exp.Literal.number(f"1E{digits}")
    scaled = exp.Mul(this=_in_parens(value), expression=factor)
    size = exp.Abs(this=scaled)
    rounded = exp.Div(this=_call("round", scaled.copy()), expression=factor.copy())
    return _choice(
        (exp.Not(this=exp.LT(this=size, expression=_special("Infinity"))), value.copy()),
        (exp.LT(this=size.copy(), expression=exp.Literal.number("5E-1")), _signed_zero(value)),
        default=rounded,
    )


def _square_root(node: exp.Expr) -> exp.Expr:
    """Negative numbers have no root in DuckDB; in Spark it is NaN."""
    _require(node.this, _NUMBERS)
    value = _double(node.this)
    failure = _failure("Negative numbers have no square root.")
    is_negative = exp.LT(this=_in_parens(value), expression=_zero())
    return _choice((is_negative, failure), default=exp.Sqrt(this=value.copy()))


def _failure(detail: str) -> exp.Expr:
    """Return an expression that fails as soon as it is evaluated."""
    return _cast(_call("raise_error", exp.Literal.string(detail)), "DOUBLE")


# Aggregates


def _sum(node: exp.Expr) -> exp.Expr:
    """Sums of integers have 128 bits in DuckDB."""
    value = _argument(node)
    _require(value, _NUMBERS)
    if kind_of(value) is Kind.INTEGER:
        _set_argument(node, _cast(value, "DECIMAL(38, 0)"))
    return node


def _of_doubles(node: exp.Expr) -> exp.Expr:
    value = _argument(node)
    _require(value, _NUMBERS)
    _set_argument(node, _double(value))
    return node if isinstance(node.parent, exp.Filter | exp.Window) else _finite(node, node)


def _filter(node: exp.Expr) -> exp.Expr:
    return node if isinstance(node.parent, exp.Window) else _finite(node, node.this)


def _finite(node: exp.Expr, aggregate: exp.Expr) -> exp.Expr:
    """Variances and deviations that are infinite or no number are errors in DuckDB."""
    if not isinstance(aggregate, _SPREADS):
        return node
    is_finite = exp.LT(this=exp.Abs(this=node.copy()), expression=_special("Infinity"))
    is_null = exp.Is(this=node.copy(), expression=exp.null())
    return _choice(
        (exp.Or(this=is_null, expression=is_finite), node.copy()),
        default=_failure("The variance is out of the range of its type."),
    )


_SPREADS = (exp.Variance, exp.VariancePop, exp.Stddev, exp.StddevSamp, exp.StddevPop)


def _count(node: exp.Expr) -> exp.Expr:
    if isinstance(node.this, exp.Distinct) and len(node.this.expressions) != 1:
        raise Untranslatable("count(DISTINCT) of several values is not available on Spark.")
    return node


def _extreme(node: exp.Expr) -> exp.Expr:
    if kind_of(_argument(node)) is Kind.UNKNOWN:
        raise _operands(node)
    return node


def _argument(node: exp.Expr) -> exp.Expr:
    inner = node.this
    if isinstance(inner, exp.Distinct):
        if len(inner.expressions) != 1:
            raise _operands(node)
        only: exp.Expr = inner.expressions[0]
        return only
    return inner  # type: ignore[no-any-return]


def _set_argument(node: exp.Expr, value: exp.Expr) -> None:
    if isinstance(node.this, exp.Distinct):
        node.this.set("expressions", [value])
    else:
        node.set("this", value)


def _window(node: exp.Expr) -> exp.Expr:
    """Spark has no FILTER of window functions: the other rows' values become null."""
    function = node.this
    if isinstance(function, exp.Filter):
        aggregate, condition = function.this, function.expression.this
        if not isinstance(aggregate, exp.Count | exp.Sum | exp.Avg | exp.Min | exp.Max):
            raise _operands(function)
        if isinstance(aggregate.this, exp.Distinct):
            raise _operands(function)
        value = aggregate.this
        if isinstance(value, exp.Star):
            value = exp.Literal.number(1)
        aggregate.set("this", exp.Case(ifs=[exp.If(this=condition, true=value)]))
        node.set("this", aggregate)
    if isinstance(function, exp.RowNumber | exp.Rank | exp.DenseRank | exp.Ntile):
        # They have 32 bits in Spark.
        return _cast(node.copy(), "BIGINT")
    return _finite(node, function)


def _neighbour(node: exp.Expr) -> exp.Expr:
    """DuckDB casts the default to the type of the value, Spark both to a common one."""
    kinds = {kind_of(node.args.get(part)) for part in ("this", "default") if node.args.get(part)}
    if len(kinds - _ANY) > 1:
        raise Untranslatable("lag() and lead() need a default of the same type on Spark.")
    return node


def _frame(node: exp.Expr) -> exp.Expr:
    if node.args.get("kind") not in (None, "ROWS", "RANGE", "rows", "range"):
        raise Untranslatable("Window frames of GROUPS are not available on Spark.")
    for part in ("start", "end"):
        bound = node.args.get(part)
        if isinstance(bound, exp.Expr):
            _whole_number(bound, "a window frame")
    return node


def _grouping(node: exp.Expr) -> exp.Expr:
    if len(node.expressions) != 1:
        raise Untranslatable("grouping() of several columns is not available on Spark.")
    return _cast(_call("grouping", node.expressions[0]), "BIGINT")


# Texts


def _text(node: exp.Expr) -> exp.Expr:
    """Check that all operands are texts."""
    for operand in node.iter_expressions():
        _require(operand, {Kind.TEXT})
    return node


def _length(node: exp.Expr) -> exp.Expr:
    """It has 32 bits in Spark."""
    return _cast(_text(node).copy(), "BIGINT")


def _lower(node: exp.Expr) -> exp.Expr:
    _require(node.this, {Kind.TEXT})
    return _letters(node.this, letters.lower())


def _upper(node: exp.Expr) -> exp.Expr:
    _require(node.this, {Kind.TEXT})
    return _letters(node.this, letters.upper())


def _letters(value: exp.Expr, table: tuple[str, str]) -> exp.Expr:
    source, target = map(exp.Literal.string, table)
    return _call("translate", value, source, target)


def _substring(node: exp.Expr) -> exp.Expr:
    _require(node.this, {Kind.TEXT})
    start, length = node.args.get("start"), node.args.get("length")
    if start is None or _whole_number(start, "a substring") < 1:
        raise Untranslatable("Substrings that start before the first character are not on Spark.")
    if length is not None:
        _whole_number(length, "a substring")
    return node


def _end_of_text(node: exp.Expr) -> exp.Expr:
    _require(node.this, {Kind.TEXT})
    count = _whole_number(node.expression, "left and right")
    name = "left" if isinstance(node, exp.Left) else "right"
    return _call(name, node.this, exp.Literal.number(count))


def _replace(node: exp.Expr) -> exp.Expr:
    _text(node)
    old, new = node.expression, node.args["replacement"]
    if not _is_text_constant(old) or not _is_text_constant(new) or not old.name:
        raise Untranslatable("replace() needs constant texts on Spark.")
    if len(new.name) > len(old.name):
        raise Untranslatable("replace() by longer texts is not available on Spark.")
    return node


def _call_with_text(name: str) -> Rule:
    def rule(node: exp.Expr) -> exp.Expr:
        _text(node)
        return _call(name, node.this, node.expression)

    return rule


def _position(node: exp.Expr) -> exp.Expr:
    _text(node)
    return _cast(_call("instr", node.this, node.args["substr"]), "BIGINT")


def _concatenate(node: exp.Expr) -> exp.Expr:
    for part in ("this", "expression"):
        operand = node.args[part]
        _require(operand, {Kind.TEXT, Kind.INTEGER, Kind.BOOLEAN})
        if kind_of(operand) is not Kind.TEXT:
            node.set(part, _cast(operand, "TEXT"))
    return node


# Times

_DAYS = frozenset({"DAY", "WEEK", "MONTH", "YEAR"})
_UNITS = _DAYS | {"HOUR", "MINUTE", "SECOND"}
_FIELDS: Mapping[str, str] = {
    "YEAR": "year",
    "QUARTER": "quarter",
    "MONTH": "month",
    "WEEK": "weekofyear",
    "DAY": "day",
    "DOY": "dayofyear",
    "HOUR": "hour",
    "MINUTE": "minute",
    "SECOND": "second",
}
_TRUNCATED = frozenset({"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"})


def _interval(node: exp.Expr) -> exp.Expr:
    unit, amount = node.args.get("unit"), node.this
    name = unit.name.upper().removesuffix("S") if isinstance(unit, exp.Var) else ""
    if name not in _UNITS or not isinstance(amount, exp.Literal) or not _WHOLE.match(amount.name):
        raise Untranslatable("Only intervals of one whole number and unit are on Spark.")
    count = int(amount.name)
    if name == "WEEK":
        name, count = "DAY", count * 7
    return exp.Interval(this=exp.Literal.number(count), unit=exp.var(name))


def _extract(node: exp.Expr) -> exp.Expr:
    return _field(node.name.upper(), node.expression)


def _named_field(name: str) -> Rule:
    return lambda node: _field(name, node.this)


def _field(name: str, value: exp.Expr) -> exp.Expr:
    _require(value, _TIMES)
    if name == "DOW":
        number: exp.Expr = exp.Sub(this=_call("dayofweek", value), expression=exp.Literal.number(1))
    elif name == "ISODOW":
        number = exp.Add(this=_call("weekday", value), expression=exp.Literal.number(1))
    elif name in _FIELDS:
        number = _call(_FIELDS[name], value)
    else:
        raise Untranslatable(f"The field {name[:40]} of a time is not available on Spark.")
    return _cast(number, "BIGINT")


def _truncate(node: exp.Expr) -> exp.Expr:
    unit = node.args.get("unit")
    name = unit.name.upper() if isinstance(unit, exp.Expr) else ""
    _require(node.this, _TIMES)
    if name not in _TRUNCATED:
        raise Untranslatable(f"date_trunc({name[:40].lower()!r}) is not available on Spark.")
    return _call("date_trunc", exp.Literal.string(name), _cast(node.this, "TIMESTAMPTZ"))


def _at_zone(node: exp.Expr) -> exp.Expr:
    """Times without a zone are those of UTC here, so their results are the same."""
    zone = node.args.get("zone")
    if not isinstance(zone, exp.Literal) or not _ZONE.match(zone.name):
        raise Untranslatable("AT TIME ZONE needs a constant name on Spark.")
    if zone.name not in available_timezones() - _DISPUTED_ZONES or not _is_stored_time(node.this):
        raise Untranslatable("AT TIME ZONE is available on Spark for columns of tables alone.")
    return _call("from_utc_timestamp", node.this, zone)


def _is_stored_time(node: exp.Expr) -> bool:
    """Whether a node is a column of one of the dataset's tables, which have times with a zone."""
    select = node.find_ancestor(exp.Select)
    if not isinstance(node, exp.Column) or kind_of(node) is not Kind.TIME or select is None:
        return False
    sources = [select.args.get("from_"), *(select.args.get("joins") or ())]
    names = {cte.alias for cte in node.root().find_all(exp.CTE)}
    return any(
        isinstance(one.this, exp.Table)
        and one.this.alias_or_name == node.table
        and one.this.name not in names
        for one in sources
        if one is not None
    )


# Casts


def _convert(node: exp.Expr) -> exp.Expr:
    target = _KINDS.get(node.args["to"].this, Kind.UNKNOWN)
    value = node.this
    if isinstance(value, exp.Literal) and not value.is_string and target in _NUMBERS:
        return node
    if _is_text_constant(value):
        if target is Kind.DATE:
            return date_of(value.name)
        if target is Kind.TIME:
            return time_of(value.name)
    source = kind_of(value)
    if source not in _CONVERTED.get(target, ()):
        raise Untranslatable(f"Casts of {source} to {target} are not available on Spark.")
    if target is Kind.TIME:
        return _cast(value, "TIMESTAMPTZ")
    return node


_CONVERTED: Mapping[Kind, frozenset[Kind]] = {
    Kind.INTEGER: frozenset({Kind.INTEGER, Kind.BOOLEAN, Kind.NULL}),
    Kind.DECIMAL: frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.NULL}),
    Kind.DOUBLE: frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE, Kind.NULL}),
    Kind.TEXT: frozenset({Kind.TEXT, Kind.INTEGER, Kind.BOOLEAN, Kind.DATE, Kind.NULL}),
    Kind.BOOLEAN: frozenset({Kind.BOOLEAN, Kind.NULL}),
    Kind.DATE: frozenset({Kind.DATE, Kind.TIME, Kind.NULL}),
    Kind.TIME: frozenset({Kind.DATE, Kind.TIME, Kind.NULL}),
}


# Queries


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
        _same_kind({*map(_kind_of_result, pair)} - _ANY)
    return node


def _kind_of_result(node: exp.Expr) -> Kind:
    value = node.unalias()
    return Kind.TEXT if _is_text_constant(value) else kind_of(value)


def _common_table(node: exp.Expr) -> exp.Expr:
    """MATERIALIZED changes no result."""
    node.set("materialized", None)
    return node


# Parts of expressions


def _require(node: exp.Expr, kinds: frozenset[Kind] | set[Kind]) -> None:
    kind = kind_of(node)
    if Kind.TEXT in kinds and _is_text_constant(node):
        return
    if kind not in kinds and kind is not Kind.NULL:
        raise _operands(node)


def _operands(node: exp.Expr) -> Untranslatable:
    text = node.sql("duckdb", comments=False)[:60]
    return Untranslatable(f"The types in {text!r} are not available on Spark.")


def _whole_number(node: exp.Expr, place: str) -> int:
    if isinstance(node, exp.Literal) and not node.is_string and _WHOLE.match(node.name):
        return int(node.name)
    raise Untranslatable(f"{place} needs a constant whole number on Spark.")


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


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[*arguments])


def _cast(node: exp.Expr, kind: str) -> exp.Expr:
    to = exp.DataType.build(kind, dialect="duckdb")
    cast = exp.Cast(this=node, to=to)
    cast.type = to
    return cast


def _double(node: exp.Expr) -> exp.Expr:
    """Return a value as a double. What counts as one may be a decimal in Spark."""
    return _cast(node, "DOUBLE")


def _special(name: str) -> exp.Expr:
    return _cast(exp.Literal.string(name), "DOUBLE")


def _zero() -> exp.Expr:
    return exp.Literal.number("0E0")


def _signed_zero(value: exp.Expr) -> exp.Expr:
    return exp.Mul(this=_in_parens(value), expression=_zero())


def _in_parens(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=node.copy())


def _choice(*branches: tuple[exp.Expr, exp.Expr], default: exp.Expr) -> exp.Expr:
    ifs = [exp.If(this=condition, true=value) for condition, value in branches]
    return exp.Paren(this=exp.Case(ifs=ifs, default=default))


_RULES: Mapping[type[exp.Expr], Rule] = {
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE), _compare),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), _compare),
    exp.Nullif: _compare,
    exp.Between: _between,
    exp.In: _in,
    exp.Like: _like,
    exp.ILike: _like_in_any_case,
    exp.Case: _case,
    exp.If: _if,
    **dict.fromkeys((exp.Coalesce, exp.Greatest, exp.Least), _alternatives),
    **dict.fromkeys((exp.Add, exp.Sub), _add),
    exp.Mul: _multiply,
    exp.Div: _divide,
    **dict.fromkeys((exp.IntDiv, exp.Mod), _whole_division),
    **dict.fromkeys((exp.Neg, exp.Abs), _negate),
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr), _integers),
    **dict.fromkeys((exp.Ceil, exp.Floor), _round_up),
    exp.Round: _round,
    exp.Sqrt: _square_root,
    exp.Sum: _sum,
    **dict.fromkeys((exp.Avg, exp.Variance, exp.VariancePop), _of_doubles),
    **dict.fromkeys((exp.Stddev, exp.StddevSamp, exp.StddevPop), _of_doubles),
    exp.Count: _count,
    **dict.fromkeys((exp.Min, exp.Max), _extreme),
    exp.Filter: _filter,
    exp.Window: _window,
    **dict.fromkeys((exp.Lag, exp.Lead), _neighbour),
    **dict.fromkeys((exp.Union, exp.Intersect, exp.Except), _set_operation),
    exp.Group: _group,
    exp.Order: _order,
    exp.WindowSpec: _frame,
    exp.CTE: _common_table,
    exp.Grouping: _grouping,
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
    exp.Interval: _interval,
    exp.Extract: _extract,
    exp.Year: _named_field("YEAR"),
    exp.Quarter: _named_field("QUARTER"),
    exp.Month: _named_field("MONTH"),
    exp.Day: _named_field("DAY"),
    **dict.fromkeys((exp.TimestampTrunc, exp.DateTrunc), _truncate),
    exp.AtTimeZone: _at_zone,
    exp.Cast: _convert,
}
