"""Positions in a server's write-ahead log."""

from __future__ import annotations


def parse_lsn(text: str) -> int:
    """Parse a position such as `16/B374D848`."""
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)


def format_lsn(lsn: int) -> str:
    """Format a position as PostgreSQL does."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFF_FFFF:X}"
