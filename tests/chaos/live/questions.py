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


def document(chance: Random, key: str) -> Document:
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
    made: Document = {"_id": key, "public": chance.random() < 0.6, "open": chance.random() < 0.5}
    for name, make in fields.items():
        if chance.random() < 0.85:
            made[name] = make(chance)
    return made


def update(chance: Random) -> Document:
    """Return an update that changes a document's position in answers."""
    return chance.choice(
        [
            {"$set": {"n": _number(chance), "public": chance.random() < 0.6}},
            {"$inc": {"m": chance.randrange(-3, 4)}},
            {"$unset": {chance.choice(["n", "text", "place", "nested"]): ""}},
            {"$addToSet": {"seen": chance.choice(LETTERS)}},
            {"$set": {"text": chance.choice(WORDS), "nested": {"x": chance.randrange(9)}}},
            {"$set": {"rows": [{"a": chance.randrange(6), "b": chance.randrange(6)}]}},
            {"$set": {"ref": reference(chance, IDS)}},
        ]
    )


def _number(chance: Random) -> Any:
    plain = chance.randrange(10)
    unusual = [None, plain + 0.5, {"$numberDecimal": f"{plain}.5"}, str(plain), [plain, 3], True]
    return plain if chance.random() < 0.8 else chance.choice(unusual)


def _place(chance: Random) -> Any:
    pair = [chance.randrange(-20, 20), chance.randrange(-20, 20)]
    return chance.choice([{"type": "Point", "coordinates": pair}, pair])


def random_query(chance: Random) -> dict[str, Any]:
    """Return the members of a query, which REST and `subscribe` share."""
    query: dict[str, Any] = {"filter": _whole_filter(chance)}
    if chance.random() < 0.5:
        fields = ["n", "nested.x", "tags", "m", "text", "at"]
        keys = chance.sample(fields, chance.randrange(1, 4))
        query["sort"] = [[key, chance.choice([1, -1])] for key in keys]
    if chance.random() < 0.5:
        query["limit"] = chance.randrange(1, 9)
        query["offset"] = chance.choice([0, 0, 1, 3])
    if chance.random() < 0.2:
        query["projection"] = chance.choice(
            [{"n": 1, "m": 1}, {"text": 0}, {"rows": {"$slice": 1}}]
        )
    return shaped(chance, query)


def _whole_filter(chance: Random) -> Filter:
    """Return a filter; `$text` and `$near` appear at the top level only."""
    rest = _filter(chance, 2)
    match chance.randrange(10):
        case 0:
            searched = chance.choice(["run", "red -green", '"wide river"', "ete"])
            return {"$text": {"$search": searched}, "$and": [rest]}
        case 1:
            here = {"type": "Point", "coordinates": [0, 0]}
            near = {"$geometry": here, "$maxDistance": 1_500_000}
            return {"place": {"$near": near}}
        case 2:
            return {}
        case _:
            return rest


def _filter(chance: Random, depth: int) -> Filter:
    if depth and chance.random() < 0.35:
        operator = chance.choice(["$and", "$or", "$nor"])
        parts = [_filter(chance, depth - 1) for _ in range(chance.randrange(1, 4))]
        return {operator: parts}
    return chance.choice(FAMILIES)(chance)


def _comparison(chance: Random) -> Filter:
    field, value = chance.choice(["n", "m", "nested.x", "rows.a"]), chance.randrange(10)
    operator = chance.choice(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "between"])
    if operator == "between":
        return {field: {"$gte": value, "$lt": value + 3}}
    test: Filter = {operator: value}
    return {field: {"$not": test} if chance.random() < 0.2 else test}


def _membership(chance: Random) -> Filter:
    values = [chance.randrange(10) for _ in range(3)]
    return chance.choice(
        [
            {"m": {"$in": values}},
            {"n": {"$nin": [*values, None]}},
            {"text": {"$in": [chance.choice(WORDS), {"$regex": "^r", "$options": ""}]}},
        ]
    )


def _element(chance: Random) -> Filter:
    return chance.choice(
        [
            {"nested.x": {"$exists": chance.random() < 0.5}},
            {"n": {"$type": chance.choice(["number", "string", "null", "array"])}},
            {"nested": None},
        ]
    )


def _array(chance: Random) -> Filter:
    letter, number = chance.choice(LETTERS), chance.randrange(6)
    return chance.choice(
        [
            {"tags": letter},
            {"tags": {"$all": [letter, "a"]}},
            {"tags": {"$size": chance.randrange(4)}},
            {"rows": {"$elemMatch": {"a": {"$gte": number}, "b": {"$lt": 7}}}},
            {"rows.0.a": number},
            {"tags": {"$not": {"$elemMatch": {"$in": [letter]}}}},
        ]
    )


def _evaluation(chance: Random) -> Filter:
    number = chance.randrange(10)
    sum_is_more: Filter = {"$gt": [{"$add": [{"$ifNull": ["$m", 0]}, 2]}, number]}
    has_letters: Filter = {"$gte": [{"$size": {"$ifNull": ["$tags", []]}}, number % 4]}
    schema = {"required": ["m"], "properties": {"m": {"bsonType": "int", "minimum": number}}}
    return chance.choice(
        [
            {"$expr": sum_is_more},
            {"$expr": {"$and": [sum_is_more, has_letters]}},
            {"$jsonSchema": schema},
            {"m": {"$mod": [3, number % 3]}},
            {"text": {"$regex": "unn|^Bl", "$options": chance.choice(["", "i"])}},
            {"text": {"$not": {"$regex": "river$"}}},
            {"$comment": "everything", "m": {"$gte": 1}},
        ]
    )


def _bits(chance: Random) -> Filter:
    operator = chance.choice(["$bitsAllSet", "$bitsAnySet", "$bitsAllClear", "$bitsAnyClear"])
    return {"flags": {operator: chance.randrange(1, 16)}}


def _geometry(chance: Random) -> Filter:
    size = chance.randrange(4, 16)
    ring = [[-size, -size], [size, -size], [size, size], [-size, size], [-size, -size]]
    return chance.choice(
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


FAMILIES = (_comparison, _comparison, _membership, _element, _array, _evaluation, _bits, _geometry)
