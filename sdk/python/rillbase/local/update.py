"""The result of an update, as far as a client can predict it.

Positions in arrays, conditions and the server's clock are decided by the server.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from rillbase.local.paths import ABSENT, Unforeseeable, changed_at, values_at
from rillbase.order import rank
from rillbase.shapes import Document

#: From the current value and the operand to the new value.
Operator: TypeAlias = Callable[[object, object], object]
#: The largest integer of the server.
MAX_LONG = 2**63 - 1
#: These do not change a missing field.
_ONLY_WHAT_IS_THERE = frozenset({"$unset", "$pop", "$pull"})


def updated(document: Document, update: Mapping[str, object]) -> Document | None:
    """Return the document with an update's operators applied; None if the result is unknown
    here.
    """
    try:
        for name, operands in update.items():
            document = _apply_operator(document, name, operands)
    except Unforeseeable:
        return None
    return document


def _apply_operator(document: Document, name: str, operands: object) -> Document:
    operator = OPERATORS.get(name)
    if operator is None or not isinstance(operands, dict):
        raise Unforeseeable
    for path, operand in operands.items():
        if name not in _ONLY_WHAT_IS_THERE or values_at(document, path):
            document = changed_at(document, path, _operation(operator, operand))
    return document


def _operation(operator: Operator, operand: object) -> Callable[[object], object]:
    return lambda current: operator(current, operand)


def merged(document: Document, patch: Mapping[str, object]) -> Document:
    """Return the document with a merge patch (RFC 7396) applied."""
    after = dict(document)
    for name, value in patch.items():
        current = after.get(name)
        if value is None:
            after.pop(name, None)
        elif isinstance(value, dict):
            after[name] = merged(current if isinstance(current, dict) else {}, value)
        else:
            after[name] = value
    return after


def _sum(current: object, operand: object) -> object:
    return _calculated(current, operand, lambda a, b: a + b)


def _product(current: object, operand: object) -> object:
    return _calculated(current, operand, lambda a, b: a * b)


def _calculated(
    current: object, operand: object, calculate: Callable[[float, float], float]
) -> object:
    """Only plain numbers are computed here: the server has its own rules for the others."""
    after = calculate(_number(0 if current is ABSENT else current), _number(operand))
    if isinstance(after, int) and abs(after) > MAX_LONG:
        raise Unforeseeable
    return after


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Unforeseeable
    return value


def _smaller(current: object, operand: object) -> object:
    return operand if current is ABSENT or rank(operand) < rank(current) else current


def _larger(current: object, operand: object) -> object:
    return operand if current is ABSENT or rank(operand) > rank(current) else current


def _pushed(current: object, operand: object) -> object:
    _refuse_modifiers(operand)
    return [*_list(current), operand]


def _added(current: object, operand: object) -> object:
    _refuse_modifiers(operand)
    items = _list(current)
    return items if any(rank(item) == rank(operand) for item in items) else [*items, operand]


def _popped(current: object, operand: object) -> object:
    return _list(current)[1:] if operand == -1 else _list(current)[:-1]


def _pulled(current: object, operand: object) -> object:
    if isinstance(operand, dict | list):
        raise Unforeseeable
    return [item for item in _list(current) if rank(item) != rank(operand)]


def _refuse_modifiers(operand: object) -> None:
    if isinstance(operand, dict) and "$each" in operand:
        raise Unforeseeable


def _list(current: object) -> list[object]:
    if current is ABSENT:
        return []
    if not isinstance(current, list):
        raise Unforeseeable
    return current


OPERATORS: Mapping[str, Operator] = {
    "$set": lambda _, operand: operand,
    "$unset": lambda _current, _operand: ABSENT,
    "$inc": _sum,
    "$mul": _product,
    "$min": _smaller,
    "$max": _larger,
    "$push": _pushed,
    "$addToSet": _added,
    "$pop": _popped,
    "$pull": _pulled,
}
