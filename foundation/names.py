"""The names that collections, topics, aggregates, datasets and environments may have."""

from __future__ import annotations

NAME_PATTERN = r"[a-z][a-z0-9_-]{0,62}"
