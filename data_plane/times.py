"""Times in requests: RFC 3339, milliseconds since 1970, or relative to now."""

from __future__ import annotations

import datetime
import re
import time

from foundation.errors import FieldProblem, InvalidBody
from rillbase_native import Value

_RELATIVE = re.compile(r"([+-])(\d{1,15})(ms|s|m|h|d)\Z")
_MILLISECONDS = re.compile(r"[0-9]{1,18}\Z")
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
#: The year 9999.
MAX_MS = 253_402_300_799_999
_HELP = "RFC 3339, milliseconds since 1970, or relative to now as in `-10s` and `+2h`."


def now_ms() -> int:
    return int(time.time() * 1000)


def read(value: Value | None, name: str, now: int) -> int | None:
    """Return a member that is a time, in milliseconds since 1970; None if it is missing."""
    if value is None or value.is_null:
        return None
    if value.kind == "string":
        return parse(value.text(), name, now)
    try:
        return _clamp(value.integer())
    except TypeError:
        raise _wrong(name) from None


def parse(text: str, name: str, now: int) -> int:
    """Parse a time."""
    relative = _RELATIVE.match(text)
    if relative is not None:
        sign, count, unit = relative.groups()
        return _clamp(now + int(f"{sign}{count}") * _UNITS_MS[unit])
    if _MILLISECONDS.match(text):
        return _clamp(int(text))
    try:
        moment = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise _wrong(name) from None
    if moment.tzinfo is None:
        raise _wrong(name)
    return _clamp(round(moment.timestamp() * 1000))


def _clamp(moment: int) -> int:
    return max(0, min(moment, MAX_MS))


def rfc3339(moment_ms: int) -> str:
    """Format a time as in responses."""
    seconds, ms = divmod(min(moment_ms, MAX_MS), 1000)
    moment = datetime.datetime.fromtimestamp(seconds, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms:03d}Z"


def _wrong(name: str) -> InvalidBody:
    return InvalidBody(errors=[FieldProblem(f"/{name}", "invalid", _HELP)])
