"""Dotted paths into documents, as in queries and updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

from rillbase.shapes import Document


class MissingValue(Enum):
    """A placeholder for a missing value."""

    ABSENT = "absent"


ABSENT = MissingValue.ABSENT


class Unforeseeable(Exception):
    """Only the server knows the result."""


def values_at(document: object, path: str) -> list[object]:
    """Return every value that a path leads to; there may be several if it leads through lists."""
    return _follow(document, path.split("."))


def _follow(value: object, steps: Sequence[str]) -> list[object]:
    if not steps:
        return [value]
    step, rest = steps[0], steps[1:]
    if isinstance(value, list):
        at = int(step) if step.isascii() and step.isdigit() else len(value)
        direct = _follow(value[at], rest) if at < len(value) else []
        through = [
            value_at_path
            for item in value
            if isinstance(item, dict)
            for value_at_path in _follow(item, steps)
        ]
        return direct + through
    if not isinstance(value, dict) or step not in value:
        return []
    return _follow(value[step], rest)


def changed_at(document: Document, path: str, change: Callable[[object], object]) -> Document:
    """Return a copy in which the value at a path of objects has changed.

    The change function receives ABSENT if there is no value, and returns it to remove the value.
    """
    step, _, rest = path.partition(".")
    if not step or step.startswith("$"):
        raise Unforeseeable
    current = document.get(step, ABSENT)
    if rest:
        inner = {} if current is ABSENT else current
        if not isinstance(inner, dict):
            raise Unforeseeable
        after: object = changed_at(inner, rest, change)
    else:
        after = change(current)
    if after is ABSENT:
        return {name: value for name, value in document.items() if name != step}
    return {**document, step: after}
