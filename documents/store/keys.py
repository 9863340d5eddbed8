"""Bounds over keys."""

from __future__ import annotations

#: Greater than every key of a document or an index entry. PostgreSQL uses a bound for an index only
#: if it is surely there, so "to the end" is a value too.
BEHIND_ALL = b"\xff" * 1_100
