"""The shape of a query's answer: documents, groups, or documents with lookups."""

from __future__ import annotations

from random import Random
from typing import Any

Members = dict[str, Any]

MEASURES: dict[str, Members] = {
    "count": {"op": "count"},
    "sum": {"op": "sum", "field": "n"},
    "mean": {"op": "avg", "field": "m"},
    "least": {"op": "min", "field": "text"},
    "most": {"op": "max", "field": "nested.x"},
}
BY = ("m", "n", "tags", "public", "nested.y")
COLLECTIONS = ("open", "ruled")


def shaped(rng: Random, members: Members) -> Members:
    """Return the members of a query, some with a group or a lookup."""
    near = "$near" in str(members["filter"])
    match rng.randrange(6):
        case 0 if not near:
            return _grouped(rng, members["filter"])
        case 1:
            return {**members, "lookup": _lookup(rng)}
        case _:
            return members


def reference(rng: Random, ids: int) -> Any:
    """Return a reference to one document, to several, or to none."""
    several = [f"d{rng.randrange(ids):02}" for _ in range(rng.randrange(4))]
    return rng.choice([f"d{rng.randrange(ids):02}", several, "missing"])


def _grouped(rng: Random, given: Members) -> Members:
    by = rng.sample(BY, rng.randrange(3))
    names = rng.sample(sorted(MEASURES), rng.randrange(1, len(MEASURES)))
    measures = {name: MEASURES[name] for name in names}
    query: Members = {"filter": given, "group": {"by": by, "measures": measures}}
    if rng.random() < 0.5:
        query["sort"] = [[rng.choice(names), rng.choice([1, -1])]]
    if rng.random() < 0.5:
        query["limit"] = rng.randrange(1, 6)
        query["offset"] = rng.choice([0, 0, 1])
    return query


def _lookup(rng: Random) -> list[Members]:
    lookup = [{"from": rng.choice(COLLECTIONS), "local": "ref", "as": "other"}]
    if rng.random() < 0.3:
        lookup.append({"from": rng.choice(COLLECTIONS), "local": "_id", "as": "namesake"})
    return lookup
