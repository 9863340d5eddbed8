"""Matches documents with a filter. None means that only the server knows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from rillbase.local.paths import values_at
from rillbase.order import is_nan, rank
from rillbase.shapes import Document
from rillbase.values import ObjectId, RegularExpression

Verdict: TypeAlias = bool | None

#: The kinds of values that a client orders as the server does.
_ORDERED = (bool, int, float, str, datetime, ObjectId)
_RANGES: Mapping[str, Callable[[object, object], bool]] = {
    "$lt": lambda a, b: rank(a) < rank(b),
    "$lte": lambda a, b: rank(a) <= rank(b),
    "$gt": lambda a, b: rank(a) > rank(b),
    "$gte": lambda a, b: rank(a) >= rank(b),
}


def matches(filter: Mapping[str, object], document: Document) -> Verdict:  # noqa: A002 -- its name
    return _all(_clause(name, condition, document) for name, condition in filter.items())


def _clause(name: str, condition: object, document: Document) -> Verdict:
    if not name.startswith("$"):
        return _field(_path_match(document, name), condition)
    if name == "$comment":
        return True
    if not isinstance(condition, list):
        return None
    parts = (matches(part, document) if isinstance(part, dict) else None for part in condition)
    match name:
        case "$and":
            return _all(parts)
        case "$or":
            return _any(parts)
        case "$nor":
            return _not(_any(parts))
        case _:
            return None


@dataclass(frozen=True, slots=True)
class _PathMatch:
    """The values that a path leads to."""

    values: Sequence[object]
    #: Whether the path leads through a list: a field missing in one element may exist in another.
    is_through_list: bool
    #: Whether the path may name an element of a list that is itself a list: it counts as a whole,
    #: unless its number was the name of a member.
    is_element: bool


def _path_match(document: Document, path: str) -> _PathMatch:
    above, dot, _ = path.rpartition(".")
    through = bool(dot) and any(isinstance(one, list) for one in _ancestors(document, above))
    values = values_at(document, path)
    by_number = path.rpartition(".")[2].isdecimal() and any(isinstance(v, list) for v in values)
    return _PathMatch(values, through, is_element=by_number)


def _ancestors(document: Document, path: str) -> Iterator[object]:
    steps = path.split(".")
    for end in range(1, len(steps) + 1):
        yield from values_at(document, ".".join(steps[:end]))


def _field(matched: _PathMatch, condition: object) -> Verdict:
    if matched.is_element:
        return None
    if not isinstance(condition, dict) or not any(name.startswith("$") for name in condition):
        return _equals(matched, condition)
    return _all(_operator(name, matched, operand) for name, operand in condition.items())


def _operator(name: str, matched: _PathMatch, operand: object) -> Verdict:
    match name:
        case "$eq":
            return _equals(matched, operand)
        case "$ne":
            return _not(_equals(matched, operand))
        case "$in" if isinstance(operand, list):
            return _any(_equals(matched, one) for one in operand)
        case "$nin" if isinstance(operand, list):
            return _not(_any(_equals(matched, one) for one in operand))
        case "$exists" if isinstance(operand, bool):
            return bool(matched.values) == operand
        case "$not" if isinstance(operand, dict):
            return _not(_field(matched, operand))
        case _:
            return _compare(name, matched, operand)


def _compare(name: str, matched: _PathMatch, operand: object) -> Verdict:
    """Comparisons are true only between values of one kind; a list is tried element by element."""
    holds = _RANGES.get(name)
    if holds is None or not isinstance(operand, _ORDERED) or is_nan(operand):
        return None
    alike = [value for value in _candidates(matched.values) if rank(value)[0] == rank(operand)[0]]
    if any(is_nan(value) for value in alike):
        return None
    return any(holds(value, operand) for value in alike)


def _equals(matched: _PathMatch, expected: object) -> Verdict:
    if isinstance(expected, RegularExpression):
        return None
    candidates = _candidates(matched.values)
    if expected is None:
        return None if matched.is_through_list else not candidates or None in candidates
    return any(rank(value) == rank(expected) for value in candidates)


def _candidates(values: Sequence[object]) -> list[object]:
    """A field with a list matches as a whole and by each of its elements."""
    return [
        one for value in values for one in ([value, *value] if isinstance(value, list) else [value])
    ]


def _not(verdict: Verdict) -> Verdict:
    return None if verdict is None else not verdict


def _all(verdicts: Iterable[Verdict]) -> Verdict:
    results = list(verdicts)
    return False if False in results else None if None in results else True


def _any(verdicts: Iterable[Verdict]) -> Verdict:
    return _not(_all(_not(verdict) for verdict in verdicts))
