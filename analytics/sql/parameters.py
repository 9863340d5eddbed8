"""The parameters of a statement: JSON values for `$1`, `?` and `$name`."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation

from analytics.query.literals import moment
from foundation.errors import FieldProblem, InvalidBody
from foundation.json_types import JsonValue

_INT128 = 2**127
_MAX_DIGITS = 38
#: A value that DuckDB binds.
Bound = bool | int | float | str | Decimal | datetime.datetime | list["Bound"] | None


def bound(parameters: list[JsonValue] | dict[str, JsonValue]) -> list[Bound] | dict[str, Bound]:
    """Return the values to bind, or raise `InvalidBody`."""
    if isinstance(parameters, dict):
        return {n: _value(value, f"/parameters/{n}") for n, value in parameters.items()}
    return [_value(value, f"/parameters/{place}") for place, value in enumerate(parameters)]


def _value(value: JsonValue, pointer: str) -> Bound:
    if isinstance(value, list):
        return [_value(item, f"{pointer}/{place}") for place, item in enumerate(value)]
    if isinstance(value, dict):
        return _extended(value, pointer)
    if isinstance(value, int) and not -_INT128 <= value < _INT128:
        raise _wrong(pointer, "The number has more than 128 bits.")
    return value


def _extended(value: dict[str, JsonValue], pointer: str) -> Bound:
    """Read Extended JSON, which says the type of a value."""
    name, text = next(iter(value.items()), ("", None))
    if name == "$date" and isinstance(text, dict) and [*text] == ["$numberLong"]:
        name, text = _CANONICAL_DATE, text["$numberLong"]
    if len(value) == 1 and name in _EXTENDED and isinstance(text, str):
        try:
            return _EXTENDED[name](text)
        except (ValueError, OverflowError, InvalidOperation):
            raise _wrong(pointer, f"Expected a value of type {name}.") from None
    raise _wrong(pointer, "Expected a text, a number, true, false, null, a list, or Extended JSON.")


def _moment_of(milliseconds: str) -> datetime.datetime:
    return _EPOCH + datetime.timedelta(milliseconds=int(milliseconds))


def _decimal_of(text: str) -> Decimal | float:
    """Return a decimal as DuckDB reads it: without its exponent, and of at most 38 digits."""
    value = Decimal(text)
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        return value
    if exponent < -_MAX_DIGITS or value.adjusted() >= _MAX_DIGITS:
        return float(value)
    return Decimal(int(value)) if exponent > 0 else value


_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_CANONICAL_DATE = "$date, $numberLong"
_EXTENDED: Mapping[str, Callable[[str], Bound]] = {
    "$numberLong": int,
    "$numberInt": int,
    "$numberDouble": float,
    "$numberDecimal": _decimal_of,
    "$date": moment,
    _CANONICAL_DATE: _moment_of,
}


def _wrong(pointer: str, detail: str) -> InvalidBody:
    return InvalidBody(detail, errors=[FieldProblem(pointer, "invalid", detail)])
