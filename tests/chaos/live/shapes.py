"""What a query makes of the documents that it finds: rows of groups, or documents with others."""

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
    """Return the members of a query; some of them group what it finds, some look others up."""
    near = "$near" in str(members["filter"])
    match chance.randrange(6):
        case 0 if not near:
            return _grouped(chance, members["filter"])
        case 1:
            return {**members, "lookup": _lookup(chance)}
        case _:
            return members


def reference(chance: Random, ids: int) -> Any:
    """Return what a document refers to others by: one of them, several, or nobody."""
    several = [f"d{chance.randrange(ids):02}" for _ in range(chance.randrange(4))]
    return chance.choice([f"d{chance.randrange(ids):02}", several, "nobody"])


def _grouped(chance: Random, given: Members) -> Members:
    by = chance.sample(BY, chance.randrange(3))
    names = chance.sample(sorted(MEASURES), chance.randrange(1, len(MEASURES)))
    measures = {name: MEASURES[name] for name in names}
    found: Members = {"filter": given, "group": {"by": by, "measures": measures}}
    if chance.random() < 0.5:
        found["sort"] = [[chance.choice(names), chance.choice([1, -1])]]
    if chance.random() < 0.5:
        found["limit"] = chance.randrange(1, 6)
        found["offset"] = chance.choice([0, 0, 1])
    return found


def _lookup(chance: Random) -> list[Members]:
    found = [{"from": chance.choice(COLLECTIONS), "local": "ref", "as": "other"}]
    if chance.random() < 0.3:
        found.append({"from": chance.choice(COLLECTIONS), "local": "_id", "as": "namesake"})
    return found
