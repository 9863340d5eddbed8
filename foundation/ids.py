"""Identifiers: their text, and those that sort by time of creation."""

from __future__ import annotations

import os
import time
from functools import lru_cache
from uuid import UUID

_VERSION_7 = 0x7 << 76
_VARIANT = 0b10 << 62
_RANDOM_A_MASK = 0xFFF << 64
_RANDOM_B_MASK = (1 << 62) - 1


@lru_cache(maxsize=65_536)
def text_of(identity: UUID) -> str:
    """Return a UUID's usual form, for ids that many requests have in common."""
    return str(identity)


@lru_cache(maxsize=65_536)
def shared(identity: UUID) -> UUID:
    """Return one object for equal UUIDs, for ids that are looked up and compared by many requests:
    Python compares other objects in Python code.
    """
    return identity


def uuid7() -> UUID:
    """Return a UUID of version 7 (RFC 9562): 48 bits of milliseconds, then 74 random bits."""
    time_ms = time.time_ns() // 1_000_000
    random_bits = int.from_bytes(os.urandom(10), "big")
    value = (
        (time_ms & 0xFFFF_FFFF_FFFF) << 80
        | _VERSION_7
        | (random_bits & _RANDOM_A_MASK)
        | _VARIANT
        | (random_bits & _RANDOM_B_MASK)
    )
    return UUID(int=value)
