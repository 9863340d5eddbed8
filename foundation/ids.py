"""Identifiers that sort by time of creation."""

from __future__ import annotations

import os
import time
from uuid import UUID

_VERSION_7 = 0x7 << 76
_VARIANT = 0b10 << 62
_RANDOM_A_MASK = 0xFFF << 64
_RANDOM_B_MASK = (1 << 62) - 1


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
