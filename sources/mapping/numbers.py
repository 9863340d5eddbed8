"""Numbers as Extended JSON, without losing a digit."""

from __future__ import annotations

import re
from decimal import Decimal

#: The limits of a decimal128.
MAX_DIGITS = 34
MIN_EXPONENT, MAX_EXPONENT = -6176, 6111
_SPECIAL = {"NaN": "NaN", "Infinity": "Infinity", "-Infinity": "-Infinity"}
_INT8 = range(-(2**63), 2**63)
_FRACTION = re.compile(r"(-?)(\d*)\.?(\d*)")


def decimal128(text: str) -> str | None:
    """Return a numeric as the text of a decimal128; None: it has too many digits."""
    if text in _SPECIAL:
        return _SPECIAL[text]
    parts = _FRACTION.fullmatch(text)
    if parts is None:
        raise ValueError(f"not a numeric: {text[:40]!r}")
    exponent = -len(parts[3])
    digits = (parts[2] + parts[3]).lstrip("0")
    while len(digits) > MAX_DIGITS and digits.endswith("0"):
        digits, exponent = digits[:-1], exponent + 1
    if len(digits) > MAX_DIGITS or not MIN_EXPONENT <= exponent <= MAX_EXPONENT:
        return None
    return f"{parts[1]}{digits or '0'}E{exponent:+d}"


def json_number(text: str, quoted: str) -> str:
    """Return a plain JSON number as Extended JSON.

    `quoted` is the same as a string, for numbers that no type represents exactly.
    """
    exact = Decimal(text)
    if exact == exact.to_integral_value() and abs(exact.adjusted()) < MAX_DIGITS:
        integer = int(exact)
        if integer in _INT8:
            return f'{{"$numberLong":"{integer}"}}'
    nearest = float(text)
    if Decimal(repr(nearest)) == exact:
        return f'{{"$numberDouble":"{nearest!r}"}}'
    digits = decimal128(f"{exact:f}") if abs(exact.adjusted()) < MAX_EXPONENT else None
    return quoted if digits is None else f'{{"$numberDecimal":"{digits}"}}'
