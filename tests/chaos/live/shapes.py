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


def shaped(chance: Random, members: Members) -> Members:
    """Return the members of a query, some with a group or a lookup."""
    near = "$near" in str(members["filter"])
    match chance.randrange(6):
        case 0 if not near:
            return _grouped(chance, members["filter"])
        case 1:
            return {**members, "lookup": _lookup(chance)}
        case _:
            return members


def reference(chance: Random, ids: int) -> Any:
    """Return a reference to one document, to several, or to none."""
    several = [f"d{chance.randrange(ids):02}" for _ in range(chance.randrange(4))]
    return chance.choice([f"d{chance.randrange(ids):02}", several, "missing"])


def _grouped(chance: Random, given: Members) -> Members:
    by = chance.sample(BY, chance.randrange(3))
    names = chance.sample(sorted(MEASURES), chance.randrange(1, len(MEASURES)))
    measures = {name: MEASURES[name] for name in names}
    query: Members = {"filter": given, "group": {"by": by, "measures": measures}}
    if chance.random() < 0.5:
        query["sort"] = [[chance.choice(names), chance.choice([1, -1])]]
    if chance.random() < 0.5:
        query["limit"] = chance.randrange(1, 6)
        query["offset"] = chance.choice([0, 0, 1])
    return query


def _lookup(chance: Random) -> list[Members]:
    lookup = [{"from": chance.choice(COLLECTIONS), "local": "ref", "as": "other"}]
    if chance.random() < 0.3:
        lookup.append({"from": chance.choice(COLLECTIONS), "local": "_id", "as": "namesake"})
    return lookup
