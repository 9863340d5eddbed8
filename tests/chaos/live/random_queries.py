"""Random queries over all operators, and random documents that some of them match."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from tests.chaos.live.shapes import reference, shaped

Document = dict[str, Any]
Filter = dict[str, Any]

WORDS = ("red", "green", "Blue", "running", "runner", "été", "wide river", "a1", "b2")
LETTERS = "abcd"
IDS = 30


def document(rng: Random, key: str) -> Document:
    """Return a document in which any field may be missing or have an unusual type."""
    fields: dict[str, Callable[[Random], Any]] = {
        "n": _number,
        "m": lambda c: c.randrange(10),
        "text": lambda c: " ".join(c.choices(WORDS, k=c.randrange(1, 5))),
        "tags": lambda c: c.sample(LETTERS, c.randrange(len(LETTERS) + 1)),
        "rows": lambda c: [{"a": c.randrange(6), "b": _number(c)} for _ in range(c.randrange(4))],
        "place": _place,
        "flags": lambda c: c.randrange(16),
        "nested": lambda c: {"x": _number(c), "y": c.choice(WORDS)},
        "at": lambda c: {"$date": f"2026-0{c.randrange(1, 9)}-11T10:00:00Z"},
        "ref": lambda c: reference(c, IDS),
    }
    document: Document = {
        "_id": key,
        "public": rng.random() < 0.6,
        "open": rng.random() < 0.5,
    }
    for name, make in fields.items():
        if rng.random() < 0.85:
            document[name] = make(rng)
    return document


def update(rng: Random) -> Document:
    """Return an update that changes a document's position in answers."""
    return rng.choice(
        [
            {"$set": {"n": _number(rng), "public": rng.random() < 0.6}},
            {"$inc": {"m": rng.randrange(-3, 4)}},
            {"$unset": {rng.choice(["n", "text", "place", "nested"]): ""}},
            {"$addToSet": {"seen": rng.choice(LETTERS)}},
            {"$set": {"text": rng.choice(WORDS), "nested": {"x": rng.randrange(9)}}},
            {"$set": {"rows": [{"a": rng.randrange(6), "b": rng.randrange(6)}]}},
            {"$set": {"ref": reference(rng, IDS)}},
        ]
    )


def _number(rng: Random) -> Any:
    plain = rng.randrange(10)
    unusual = [None, plain + 0.5, {"$numberDecimal": f"{plain}.5"}, str(plain), [plain, 3], True]
    return plain if rng.random() < 0.8 else rng.choice(unusual)


def _place(rng: Random) -> Any:
    pair = [rng.randrange(-20, 20), rng.randrange(-20, 20)]
    return rng.choice([{"type": "Point", "coordinates": pair}, pair])


def random_query(rng: Random) -> dict[str, Any]:
    """Return the members of a query, which REST and `subscribe` share."""
    query: dict[str, Any] = {"filter": _whole_filter(rng)}
    if rng.random() < 0.5:
        fields = ["n", "nested.x", "tags", "m", "text", "at"]
        keys = rng.sample(fields, rng.randrange(1, 4))
        query["sort"] = [[key, rng.choice([1, -1])] for key in keys]
    if rng.random() < 0.5:
        query["limit"] = rng.randrange(1, 9)
        query["offset"] = rng.choice([0, 0, 1, 3])
    if rng.random() < 0.2:
        query["projection"] = rng.choice([{"n": 1, "m": 1}, {"text": 0}, {"rows": {"$slice": 1}}])
    return shaped(rng, query)


def _whole_filter(rng: Random) -> Filter:
    """Return a filter; `$text` and `$near` appear at the top level only."""
    rest = _filter(rng, 2)
    match rng.randrange(10):
        case 0:
            searched = rng.choice(["run", "red -green", '"wide river"', "ete"])
            return {"$text": {"$search": searched}, "$and": [rest]}
        case 1:
            here = {"type": "Point", "coordinates": [0, 0]}
            near = {"$geometry": here, "$maxDistance": 1_500_000}
            return {"place": {"$near": near}}
        case 2:
            return {}
        case _:
            return rest


def _filter(rng: Random, depth: int) -> Filter:
    if depth and rng.random() < 0.35:
        operator = rng.choice(["$and", "$or", "$nor"])
        parts = [_filter(rng, depth - 1) for _ in range(rng.randrange(1, 4))]
        return {operator: parts}
    return rng.choice(FAMILIES)(rng)


def _comparison(rng: Random) -> Filter:
    field, value = rng.choice(["n", "m", "nested.x", "rows.a"]), rng.randrange(10)
    operator = rng.choice(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "between"])
    if operator == "between":
        return {field: {"$gte": value, "$lt": value + 3}}
    test: Filter = {operator: value}
    return {field: {"$not": test} if rng.random() < 0.2 else test}


def _membership(rng: Random) -> Filter:
    values = [rng.randrange(10) for _ in range(3)]
    return rng.choice(
        [
            {"m": {"$in": values}},
            {"n": {"$nin": [*values, None]}},
            {"text": {"$in": [rng.choice(WORDS), {"$regex": "^r", "$options": ""}]}},
        ]
    )


def _element(rng: Random) -> Filter:
    return rng.choice(
        [
            {"nested.x": {"$exists": rng.random() < 0.5}},
            {"n": {"$type": rng.choice(["number", "string", "null", "array"])}},
            {"nested": None},
        ]
    )


def _array(rng: Random) -> Filter:
    letter, number = rng.choice(LETTERS), rng.randrange(6)
    return rng.choice(
        [
            {"tags": letter},
            {"tags": {"$all": [letter, "a"]}},
            {"tags": {"$size": rng.randrange(4)}},
            {"rows": {"$elemMatch": {"a": {"$gte": number}, "b": {"$lt": 7}}}},
            {"rows.0.a": number},
            {"tags": {"$not": {"$elemMatch": {"$in": [letter]}}}},
        ]
    )


def _evaluation(rng: Random) -> Filter:
    number = rng.randrange(10)
    sum_is_more: Filter = {"$gt": [{"$add": [{"$ifNull": ["$m", 0]}, 2]}, number]}
    has_letters: Filter = {"$gte": [{"$size": {"$ifNull": ["$tags", []]}}, number % 4]}
    schema = {"required": ["m"], "properties": {"m": {"bsonType": "int", "minimum": number}}}
    return rng.choice(
        [
            {"$expr": sum_is_more},
            {"$expr": {"$and": [sum_is_more, has_letters]}},
            {"$jsonSchema": schema},
            {"m": {"$mod": [3, number % 3]}},
            {"text": {"$regex": "unn|^Bl", "$options": rng.choice(["", "i"])}},
            {"text": {"$not": {"$regex": "river$"}}},
            {"$comment": "everything", "m": {"$gte": 1}},
        ]
    )


def _bit_filter(rng: Random) -> Filter:
    operator = rng.choice(["$bitsAllSet", "$bitsAnySet", "$bitsAllClear", "$bitsAnyClear"])
    return {"flags": {operator: rng.randrange(1, 16)}}


def _geometry(rng: Random) -> Filter:
    size = rng.randrange(4, 16)
    ring = [[-size, -size], [size, -size], [size, size], [-size, size], [-size, -size]]
    return rng.choice(
        [
            {"place": {"$geoWithin": {"$centerSphere": [[0, 0], size / 57]}}},
            {"place": {"$geoWithin": {"$box": [[-size, -size], [size, size]]}}},
            {
                "place": {
                    "$geoIntersects": {"$geometry": {"type": "Polygon", "coordinates": [ring]}}
                }
            },
        ]
    )


FAMILIES = (
    _comparison,
    _comparison,
    _membership,
    _element,
    _array,
    _evaluation,
    _bit_filter,
    _geometry,
)
