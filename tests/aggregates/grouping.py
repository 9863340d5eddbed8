"""What a view over documents has to answer: a GROUP BY, done by hand."""

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
#: Of a view over a collection that is still to be named.
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
    """Return what the view has to answer, by kind."""
    groups: defaultdict[str, list[Json]] = defaultdict(list)
    for one in documents:
        if one.get("on") is not False:
            groups[one["kind"]].append(one)
    return {kind: _row(kind, found) for kind, found in groups.items()}


def _row(kind: str, found: list[Json]) -> Json:
    numbers = [one["n"] for one in found]
    names = Counter(one["who"]["name"] for one in found)
    return {
        "kind": kind,
        "count": len(found),
        "total": sum(numbers),
        "least": min(numbers),
        "most": max(numbers),
        "people": len(names),
        "best": sorted(names.values(), reverse=True)[:3],
    }


def comparable(rows: Iterable[Json]) -> dict[str, Json]:
    """Return an answer's rows in the same form: which of equals are the best is not said."""
    return {row["kind"]: {**row, "best": [item["count"] for item in row["best"]]} for row in rows}
