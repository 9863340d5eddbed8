"""Input of hostile clients: unexpected values, and bodies with one at each position."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

#: Longer than what an error text may quote.
LONG = "S" * 5_000
ECHOED = "S" * 401

#: As JSON text, because some of them cannot be produced by a JSON writer.
VALUES: Mapping[str, str] = {
    "null": "null",
    "true": "true",
    "zero": "0",
    "minus one": "-1",
    "a fraction": "0.5",
    "2^53": "9007199254740993",
    "2^63": "9223372036854775808",
    "-2^63": "-9223372036854775808",
    "many digits": "9" * 5_000,
    "a huge double": "1e308",
    "beyond doubles": "1e400",
    "NaN": "NaN",
    "-Infinity": "-Infinity",
    "an empty string": '""',
    "a word": '"x"',
    "a number as text": '"17"',
    "other digits": '"\\u0663"',
    "a NUL character": '"a\\u0000b"',
    "a lone surrogate": '"\\ud800"',
    "a wide character": '"\\ud83d\\ude00"',
    "a long string": json.dumps(LONG),
    "a path": '"../../etc/passwd"',
    "a percent sign": '"%00%ff%"',
    "the year 0": '"0000-01-01T00:00:00Z"',
    "before year 1": '"0001-01-01T00:00:00+23:59"',
    "beyond year 9999": '"9999-12-31T23:59:59-23:59"',
    "an impossible day": '"2026-02-30T00:00:00Z"',
    "a zone that is none": '"2026-01-01T00:00:00+99:99"',
    "no zone": '"2026-01-01T00:00:00"',
    "an empty list": "[]",
    "a list": '[1,"x",null,{}]',
    "lists in lists": "[" * 90 + "]" * 90,
    "too deep": "[" * 2_000 + "]" * 2_000,
    "an empty object": "{}",
    "an object": '{"a":1}',
    "a name twice": '{"a":1,"a":2}',
    "an empty name": '{"":1}',
    "a long name": "{" + json.dumps(LONG) + ":1}",
    "an operator": '{"$gt":""}',
    "no operator": '{"$nonsense":1}',
    "an impossible date": '{"$date":"2026-02-30T00:00:00Z"}',
    "a date beyond all": '{"$date":{"$numberLong":"9223372036854775807"}}',
    "no ObjectId": '{"$oid":"x"}',
    "no long": '{"$numberLong":"x"}',
    "a NaN": '{"$numberDouble":"NaN"}',
    "a decimal NaN": '{"$numberDecimal":"NaN"}',
    "a decimal infinity": '{"$numberDecimal":"-Infinity"}',
    "a wide decimal": '{"$numberDecimal":"1E+6144"}',
    "no binary": '{"$binary":{"base64":"!","subType":"zz"}}',
    "MinKey": '{"$minKey":1}',
}
_MARK = "\N{PILCROW SIGN}here"


def places(body: object, at: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Yield the path to each value in a body, the body itself first."""
    yield at
    named = body if isinstance(body, dict) else {}
    numbered = dict(enumerate(body)) if isinstance(body, list) else {}
    for name, value in {**named, **numbered}.items():
        yield from places(value, (*at, name))


def with_value(body: object, place: tuple[str | int, ...], text: str) -> str:
    """Return a body as JSON text in which the value at a path is replaced by this text."""
    return json.dumps(_marked(body, place)).replace(json.dumps(_MARK), text)


def _marked(body: Any, place: tuple[str | int, ...]) -> object:
    if not place:
        return _MARK
    copy = dict(body) if isinstance(body, dict) else list(body)
    copy[place[0]] = _marked(body[place[0]], place[1:])  # type: ignore[index]
    return copy


def mutated(body: object) -> Iterator[tuple[str, str]]:
    """Yield mutations with their names: each value at each path."""
    for place in places(body):
        for name, text in VALUES.items():
            yield f"/{'/'.join(map(str, place))} is {name}", with_value(body, place, text)
