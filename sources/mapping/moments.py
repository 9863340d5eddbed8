"""Converts dates and timestamps in PostgreSQL's ISO style to milliseconds since 1970.

Python's dates are limited to the years 1 to 9999; PostgreSQL's are not.
"""

from __future__ import annotations

import re

_MOMENT = re.compile(
    r"(\d{4,})-(\d\d)-(\d\d)"
    r"(?: (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(?:([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?)?)?"
    r"( BC)?"
)
_DAY_MS = 86_400_000
#: Days from 0000-03-01, where the calendar's cycle of 400 years begins, to 1970-01-01.
_DAYS_TO_1970 = 719_468
_ERA_DAYS = 146_097


def moment_ms(text: str) -> int:
    """Return a date or timestamp in milliseconds, rounded down; without a zone it is UTC."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"not a timestamp: {text[:40]!r}")
    year = int(match[1])
    if match[12]:
        year = 1 - year
    days = _days(year, int(match[2]), int(match[3]))
    seconds = int(match[4] or 0) * 3600 + int(match[5] or 0) * 60 + int(match[6] or 0)
    offset = int(match[9] or 0) * 3600 + int(match[10] or 0) * 60 + int(match[11] or 0)
    seconds -= -offset if match[8] == "-" else offset
    return days * _DAY_MS + seconds * 1000 + int((match[7] or "0").ljust(6, "0")) // 1000


def _days(year: int, month: int, day: int) -> int:
    """Return the days since 1970 in the proleptic Gregorian calendar."""
    year -= month <= 2  # noqa: PLR2004 -- years that begin in March have their leap day at the end
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * _ERA_DAYS + day_of_era - _DAYS_TO_1970
