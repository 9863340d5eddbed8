"""Bounds over keys."""

from __future__ import annotations

#: Greater than every key of a document or an index entry. PostgreSQL uses a bound for an index only
#: if it always exists, so "to the end" is also a value.
BEHIND_ALL = b"\xff" * 1_100
