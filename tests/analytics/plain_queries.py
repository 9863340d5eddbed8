"""A slow reference for queries: rows are dictionaries, and each phase is a loop."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from functools import cmp_to_key, partial
from typing import Any

Row = dict[str, Any]
_COMPARES: dict[str, Callable[[Any, Any], bool]] = {
    "$eq": operator.eq,
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


class Overflow(Exception):
    """A sum of integers does not fit into 64 bits."""


def answer(rows: Iterable[Row], query: Row, key: tuple[str, ...]) -> list[Row]:
    """Return the answer to a query. Dates and times in it are values of Python."""
    found = [row for row in rows if matches(row, query.get("filter", {}))]
    ties = key
    if "aggregates" in query:
        ties = tuple(query["group_by"])
        found = [row for row in groups(found, query) if matches(row, query.get("having", {}))]
    order = [*query.get("order", []), *((name, 1) for name in ties)]
    by_order: Callable[[Row, Row], int] = partial(compare, order=order)
    found = sorted(found, key=cmp_to_key(by_order))
    found = found[: query["limit"]]
    return [{n: row[n] for n in query["columns"]} for row in found] if "columns" in query else found


def matches(row: Row, where: Row) -> bool:
    return all(_matches(row, name, value) for name, value in where.items())


def _matches(row: Row, name: str, value: Any) -> bool:
    if name == "$and":
        return all(matches(row, part) for part in value)
    if name in ("$or", "$nor"):
        return any(matches(row, part) for part in value) == (name == "$or")
    operators = value if isinstance(value, dict) else {"$eq": value}
    return all(_holds(row[name], op, operand) for op, operand in operators.items())


def _holds(value: Any, op: str, operand: Any) -> bool:
    if op == "$exists":
        return bool((value is not None) == operand)
    if op in ("$ne", "$nin"):
        return not _holds(value, {"$ne": "$eq", "$nin": "$in"}[op], operand)
    if op == "$in":
        return any(_holds(value, "$eq", one) for one in operand)
    if value is None or operand is None:
        return op == "$eq" and value is operand
    return _COMPARES[op](value, operand)


def groups(rows: list[Row], query: Row) -> list[Row]:
    by = query["group_by"]
    members: dict[tuple[Any, ...], list[Row]] = {} if by else {(): []}
    for row in rows:
        members.setdefault(tuple(_same(row[name]) for name in by), []).append(row)
    return [
        {n: part[0][n] for n in by}
        | {name: aggregate(part, **one) for name, one in query["aggregates"].items()}
        for part in members.values()
    ]


def aggregate(rows: list[Row], op: str, column: str | None = None) -> Any:
    if column is None:
        return len(rows)
    values = [row[column] for row in rows if row[column] is not None]
    if op == "count":
        return len(values)
    if op == "distinct":
        return len({_same(value) for value in values})
    if not values:
        return None
    if op in ("min", "max"):
        numbers = [value for value in values if not _is_nan(value)]
        return {"min": min, "max": max}[op](numbers) if numbers else math.nan
    total = math.fsum(values) if isinstance(values[0], float) else sum(values)
    if op == "avg":
        return total / len(values)
    if isinstance(total, int) and not -(2**63) <= total < 2**63:
        raise Overflow
    return total


def compare(a: Row, b: Row, order: list[tuple[str, int]]) -> int:
    """Null is last in both directions, and NaN before it."""
    for name, direction in order:
        left, right = a[name], b[name]
        ranks = [2 if v is None else int(_is_nan(v)) for v in (left, right)]
        if ranks[0] != ranks[1]:
            return ranks[0] - ranks[1]
        if ranks[0] == 0 and left != right:
            return direction if left > right else -direction
    return 0


def _same(value: Any) -> Any:
    """Return a value that is equal for all NaN."""
    return "NaN" if _is_nan(value) else value


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
