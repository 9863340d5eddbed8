"""Types for values that neither JSON nor Python has; Python's own types represent the others.

datetime ↔ date          bytes ↔ binary         uuid.UUID ↔ binary, subtype 4
Decimal ↔ decimal128     re.Pattern → regular expression
int ↔ int32 or int64     float ↔ double
"""

from __future__ import annotations

import itertools
import os
import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import total_ordering

_HEX = re.compile(r"[0-9a-f]{24}")
_PROCESS = os.urandom(5).hex()
_COUNTER = itertools.count(int.from_bytes(os.urandom(3)))


@total_ordering
class ObjectId:
    """A document id of 12 bytes: seconds, five random bytes of this process, a counter."""

    __slots__ = ("hex",)

    def __init__(self, text: str | None = None) -> None:
        """Take 24 hex digits; without them, make a new id.

        Example:
            print(ObjectId("65f000000000000000000000"))  # 65f000000000000000000000
        """
        digits = _generate() if text is None else text.lower()
        if not _HEX.fullmatch(digits):
            raise ValueError("an ObjectId must have 24 hexadecimal digits")
        self.hex = digits

    @property
    def made_at(self) -> datetime:
        """When the id was created, to the second.

        Example:
            print(ObjectId("65f000000000000000000000").made_at.year)  # 2024
        """
        return datetime.fromtimestamp(int(self.hex[:8], 16), UTC)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectId) and other.hex == self.hex

    def __lt__(self, other: ObjectId) -> bool:
        return self.hex < other.hex

    def __hash__(self) -> int:
        return hash(self.hex)

    def __str__(self) -> str:
        return self.hex

    def __repr__(self) -> str:
        return f"ObjectId({self.hex!r})"


def _generate() -> str:
    return f"{int(time.time()):08x}{_PROCESS}{next(_COUNTER) & 0xFFFFFF:06x}"


@dataclass(frozen=True, slots=True)
class Binary:
    """Bytes of a subtype other than 0 (`bytes`) and 4 (`uuid.UUID`)."""

    data: bytes
    subtype: int


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """MongoDB's internal timestamp. Use `datetime` for dates."""

    seconds: int
    ordinal: int


@dataclass(frozen=True, slots=True)
class RegularExpression:
    """A regular expression as a stored value. Filters also accept `re.compile(…)`."""

    pattern: str
    options: str = ""


@dataclass(frozen=True, slots=True)
class BoundaryValue:
    """The value that sorts before all others (`MIN`) or after them (`MAX`)."""

    name: str


#: The values that sort before all others, and after them.
MIN, MAX = BoundaryValue("$minKey"), BoundaryValue("$maxKey")
