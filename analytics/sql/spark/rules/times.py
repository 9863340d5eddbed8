"""Dates, times, intervals and zones."""

from __future__ import annotations

import re
from collections.abc import Mapping
from zoneinfo import available_timezones

from sqlglot import exp

from analytics.sql.spark.grammar import Untranslatable
from analytics.sql.spark.rules.kinds import TIMES, WHOLE, Kind, kind_of, require
from analytics.sql.spark.rules.parts import Rule, call, cast

#: Names without a region are abbreviations, which Java does not have or knows no history of.
_ZONE = re.compile(r"UTC\Z|[A-Z][A-Za-z]{0,31}/[A-Za-z0-9_+/-]{1,63}\Z")


#: Zones whose rules differ between DuckDB's and Java's copies of the database of zones.
_DISPUTED_ZONES = frozenset({"Europe/Chisinau", "Europe/Tiraspol"})


DAYS = frozenset({"DAY", "WEEK", "MONTH", "YEAR"})


_UNITS = DAYS | {"HOUR", "MINUTE", "SECOND"}


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
    if name not in _UNITS or not isinstance(amount, exp.Literal) or not WHOLE.match(amount.name):
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
    require(value, TIMES)
    if name == "DOW":
        number: exp.Expr = exp.Sub(this=call("dayofweek", value), expression=exp.Literal.number(1))
    elif name == "ISODOW":
        number = exp.Add(this=call("weekday", value), expression=exp.Literal.number(1))
    elif name in _FIELDS:
        number = call(_FIELDS[name], value)
    else:
        raise Untranslatable(f"The field {name[:40]} of a time is not available on Spark.")
    return cast(number, "BIGINT")


def _truncate(node: exp.Expr) -> exp.Expr:
    unit = node.args.get("unit")
    name = unit.name.upper() if isinstance(unit, exp.Expr) else ""
    require(node.this, TIMES)
    if name not in _TRUNCATED:
        raise Untranslatable(f"date_trunc({name[:40].lower()!r}) is not available on Spark.")
    return call("date_trunc", exp.Literal.string(name), cast(node.this, "TIMESTAMPTZ"))


def _at_zone(node: exp.Expr) -> exp.Expr:
    """Times without a zone are those of UTC here, so their results are the same."""
    zone = node.args.get("zone")
    if not isinstance(zone, exp.Literal) or not _ZONE.match(zone.name):
        raise Untranslatable("AT TIME ZONE needs a constant name on Spark.")
    if zone.name not in available_timezones() - _DISPUTED_ZONES or not _is_stored_time(node.this):
        raise Untranslatable("AT TIME ZONE is available on Spark for columns of tables alone.")
    return call("from_utc_timestamp", node.this, zone)


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


RULES: Mapping[type[exp.Expr], Rule] = {
    exp.Interval: _interval,
    exp.Extract: _extract,
    exp.Year: _named_field("YEAR"),
    exp.Quarter: _named_field("QUARTER"),
    exp.Month: _named_field("MONTH"),
    exp.Day: _named_field("DAY"),
    **dict.fromkeys((exp.TimestampTrunc, exp.DateTrunc), _truncate),
    exp.AtTimeZone: _at_zone,
}
