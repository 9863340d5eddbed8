"""The expected result of a view over documents: a GROUP BY in Python."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]

MEASURES: Json = {
    "count": {"op": "count"},
    "total": {"op": "sum", "field": "n", "type": "int"},
    "least": {"op": "min", "field": "n"},
    "most": {"op": "max", "field": "n"},
    "people": {"op": "distinct", "field": "who.name"},
    "best": {"op": "top", "field": "who.name", "k": 3},
}
#: The definition of a view, without the name of its collection.
BY_KIND: Json = {
    "name": "by_kind",
    "dimensions": ["kind"],
    "time": None,
    "rollups": [[]],
    "measures": MEASURES,
}
FILTER: Json = {"on": {"$ne": False}}


def document(luck: random.Random, key: int) -> Json:
    return {
        "_id": key,
        "kind": luck.choice("abc"),
        "n": luck.randrange(-50, 50),
        "who": {"name": f"w{luck.randrange(6)}"},
        "on": luck.random() < 0.8,
    }


def grouped(documents: Iterable[Json]) -> dict[str, Json]:
    """Return the view's expected result, by kind."""
    groups: defaultdict[str, list[Json]] = defaultdict(list)
    for one in documents:
        if one.get("on") is not False:
            groups[one["kind"]].append(one)
    return {kind: _row(kind, documents) for kind, documents in groups.items()}


def _row(kind: str, documents: list[Json]) -> Json:
    numbers = [one["n"] for one in documents]
    names = Counter(one["who"]["name"] for one in documents)
    return {
        "kind": kind,
        "count": len(documents),
        "total": sum(numbers),
        "least": min(numbers),
        "most": max(numbers),
        "people": len(names),
        "best": sorted(names.values(), reverse=True)[:3],
    }


def comparable(rows: Iterable[Json]) -> dict[str, Json]:
    """Return the rows of a result in a comparable form: the order among equal top values is
    unspecified.
    """
    return {row["kind"]: {**row, "best": [item["count"] for item in row["best"]]} for row in rows}
