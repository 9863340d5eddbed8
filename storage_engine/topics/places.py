"""The place of a publication or a subscription: an id or an area."""

from __future__ import annotations

import json
import math

from foundation.errors import FieldProblem, InvalidBody
from foundation.json_types import JsonObject
from foundation.resp_pipeline import Argument
from rillbase_native import Value
from storage_engine.models import Topic
from storage_engine.node.publication import Words

MAX_ID_CHARS = 1_000
MAX_ABS = 1e15
_PAIR, _BOX = 2, 4
_AREAS = (Topic.Kind.GEO, Topic.Kind.PLANE)


def read(value: Value, kind: str, *, id_member: str = "id") -> list[Argument]:
    """Return the command arguments for a body's place, or raise why it is not valid."""
    identity, area = value.get(id_member), value.get("geo")
    if kind in _AREAS:
        if identity is not None or area is None:
            raise _wrong("geo", "This topic is about areas: set `geo`.")
        return _area(area, kind)
    if area is not None or identity is None:
        raise _wrong(id_member, f"This topic is about ids: set `{id_member}`.")
    if identity.kind != "string" or len(identity.text()) > MAX_ID_CHARS:
        raise _wrong(id_member, f"Expected a string of at most {MAX_ID_CHARS} characters.")
    return ["ID", identity.text()]


def _area(area: Value, kind: str) -> list[Argument]:
    radius = "radius_m" if kind == Topic.Kind.GEO else "radius"
    if area.kind != "object":
        raise _wrong("geo", "Expected an object.")
    match sorted(area.names()):
        case ["box"]:
            return ["BOX", *map(repr, _numbers(area, "box", _BOX))]
        case ["center", name] if name == radius:
            (length,) = _numbers(area, radius, 1)
            if length < 0:
                raise _wrong(f"geo/{radius}", "Must not be negative.")
            return ["CIRCLE", *map(repr, _numbers(area, "center", _PAIR)), repr(length)]
        case _:
            raise _wrong("geo", f"Specify either `center` and `{radius}`, or `box`.")


def _numbers(area: Value, name: str, count: int) -> list[float]:
    """Return a member that is a number or a list of numbers."""
    try:
        plain = json.loads(area.get(name).ejson())  # type: ignore[union-attr]
    except ValueError:
        plain = None
    numbers = plain if isinstance(plain, list) else [plain]
    good = all(type(n) in (int, float) and math.isfinite(n) and abs(n) < MAX_ABS for n in numbers)
    if not good or len(numbers) != count or isinstance(plain, list) is (count == 1):
        what = "A number." if count == 1 else f"Expected a list of {count} numbers."
        raise _wrong(f"geo/{name}", what)
    return [float(number) for number in numbers]


def shown(place: Words, kind: str, *, id_member: str = "id") -> JsonObject:
    """Return the member of a response that contains the place."""
    word, *rest = (part.decode() if isinstance(part, bytes) else part for part in place)
    match str(word).upper():
        case "CIRCLE":
            x, y, radius = map(float, rest)
            name = "radius_m" if kind == Topic.Kind.GEO else "radius"
            return {"geo": {"center": [x, y], name: radius}}
        case "BOX":
            return {"geo": {"box": [float(number) for number in rest]}}
        case _:
            return {id_member: str(rest[0]) if rest else ""}


def _wrong(name: str, detail: str) -> InvalidBody:
    return InvalidBody(errors=[FieldProblem(f"/{name}", "invalid", detail)])
