"""A random history of two collections, and their contents after each write."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

Document = dict[str, Any]
Id = str | int
Place = tuple[str, Id]

SIDES = ("open", "ruled")
#: Few, so that deleted documents return and references often resolve.
IDS: tuple[Id, ...] = (*(f"d{number}" for number in range(11)), 0, 1, 2, 3)
#: Sums of these reveal premature rounding and drift.
FRACTIONS = (0.1, 0.2, -0.3, 2.5, 3.0, 0.0, 1e16, -1e16, 1e300, -1e300, 1e-300)
#: Integers that doubles cannot represent and whose sums overflow 64 bits.
LARGE = (2**53 + 1, -(2**53) - 1, 2**62, 2**62 + 1, -(2**62))
NOTHING = (None, "x", "", True, False)


@dataclass(frozen=True)
class Write:
    """One change of one document."""

    side: str
    id: Id
    kind: Literal["insert", "replace", "update", "merge", "delete"]
    change: Document = field(default_factory=dict)

    @property
    def place(self) -> Place:
        return (self.side, self.id)

    def applied(self, body: Document | None) -> Document | None:
        """Return the document after this write."""
        match self.kind:
            case "insert" | "replace":
                return {"_id": self.id, **self.change}
            case "update":
                return updated(body or {}, self.change)
            case "merge":
                return merged(body or {}, self.change)
            case "delete":
                return None

    def operation(self) -> Document:
        """Return the write as an operation of a batch."""
        match self.kind:
            case "insert":
                return {"insert": {"_id": self.id, **self.change}}
            case "replace":
                return {"replace": {"id": self.id, "document": self.change}}
            case "update":
                return {"update": {"id": self.id, "update": self.change}}
            case "delete":
                return {"delete": {"id": self.id}}
            case "merge":
                raise ValueError("batches do not merge")


def updated(body: Document, change: Document) -> Document:
    """Apply `$set` and `$unset` to paths of at most two names."""
    copied = copy.deepcopy(body)
    for path, value in change.get("$set", {}).items():
        parent, _, name = path.rpartition(".")
        (copied.setdefault(parent, {}) if parent else copied)[name] = copy.deepcopy(value)
    for path in change.get("$unset", {}):
        parent, _, name = path.rpartition(".")
        inside = copied.get(parent) if parent else copied
        if isinstance(inside, dict):
            inside.pop(name, None)
    return copied


def merged(body: Document, change: Document) -> Document:
    """Apply a merge patch."""
    copied = dict(body)
    for name, value in change.items():
        before = copied.pop(name, None)
        if isinstance(value, dict):
            copied[name] = merged(before if isinstance(before, dict) else {}, value)
        elif value is not None:
            copied[name] = value
    return copied


@dataclass
class History:
    """Draws writes, and keeps the documents that result."""

    rng: Random
    bodies: dict[Place, Document] = field(default_factory=dict)

    def take(self, writes: Sequence[Write]) -> None:
        for write in writes:
            after = write.applied(self.bodies.get(write.place))
            if after is None:
                del self.bodies[write.place]
            else:
                self.bodies[write.place] = after

    def one(self) -> Write:
        return self._drawn(self.rng.choice(SIDES), self.bodies, alone=True)

    def batch(self, sides: Sequence[str]) -> list[Write]:
        """Draw the writes of one batch; some change the same document."""
        scratch = History(self.rng, dict(self.bodies))
        writes = []
        for _ in range(self.rng.randrange(1, 7)):
            write = scratch._drawn(self.rng.choice(sides), scratch.bodies, alone=False)
            scratch.take([write])
            writes.append(write)
        return writes

    def forbidden(self) -> Write | None:
        """Draw an insert that is rejected because its document exists."""
        if not self.bodies:
            return None
        side, key = self.rng.choice(list(self.bodies))
        return Write(side, key, "insert", drawn_document(self.rng))

    def _drawn(self, side: str, bodies: dict[Place, Document], *, alone: bool) -> Write:
        rng, key = self.rng, self.rng.choice(IDS)
        body = bodies.get((side, key))
        if body is None:
            kind: Literal["insert", "replace"] = rng.choice(["insert", "replace"])
            return Write(side, key, kind, drawn_document(rng))
        match rng.randrange(8):
            case 0 | 1:
                return Write(side, key, "delete")
            case 2:
                return Write(side, key, "replace", drawn_document(rng))
            case 3 | 4 if alone:
                return Write(side, key, "merge", drawn_patch(rng))
            case _:
                return Write(side, key, "update", drawn_update(rng, body))


def drawn_update(rng: Random, body: Document) -> Document:
    fresh = drawn_document(rng)
    names = rng.sample(sorted(fresh), min(len(fresh), rng.randrange(1, 4)))
    change = {"$set": {name: fresh[name] for name in names}}
    gone = [name for name in ("n", "kind", "tags", "ref", "public") if name not in names]
    change["$unset"] = dict.fromkeys(rng.sample(gone, min(len(gone), rng.randrange(3))), "")
    if "nested" not in names:
        if isinstance(body.get("nested", {}), dict) and rng.random() < 0.5:
            change["$set"]["nested.x"] = drawn_number(rng)
        elif rng.random() < 0.5:
            change["$unset"]["nested.x"] = ""
    return {operator: paths for operator, paths in change.items() if paths}


def drawn_patch(rng: Random) -> Document:
    fresh = drawn_document(rng)
    if rng.random() < 0.3:
        fresh["nested"] = {"x": rng.choice([None, drawn_number(rng)])}
    names = rng.sample(sorted(fresh), min(len(fresh), rng.randrange(1, 4)))
    return {name: None if rng.random() < 0.3 else fresh[name] for name in names}


def drawn_document(rng: Random) -> Document:
    """Draw a document without an id; each of its fields may be missing."""
    fields = {
        "n": _n(rng),
        "kind": rng.choice(["a", "b", "a b", 1, 1.0, 2, True, None, ["a"], ["a", "b"], []]),
        "tags": rng.sample(["a", "b", "c"], rng.randrange(4)),
        "nested": _nested(rng),
        "ref": _reference(rng),
        "lines": _lines(rng),
        "public": rng.choice([True, True, True, False, None]),
    }
    # At least one field is present, for an update to set.
    kept = rng.choice(sorted(fields))
    return {name: one for name, one in fields.items() if name == kept or rng.random() < 0.8}


def drawn_number(rng: Random) -> float:
    match rng.randrange(6):
        case 0:
            return rng.choice(FRACTIONS)
        case 1:
            return rng.gauss(0, 100)
        case 2:
            return rng.choice(LARGE)
        case _:
            return rng.randrange(-3, 6)


def _n(rng: Random) -> Any:
    return rng.choice(NOTHING) if rng.random() < 0.2 else drawn_number(rng)


def _nested(rng: Random) -> Any:
    inner = {"x": rng.choice([drawn_number(rng), rng.randrange(3), "x", None])}
    return rng.choice([inner, inner, inner, {}, [inner, {"x": 1}], [], 7, None])


def _reference(rng: Random) -> Any:
    several = [_target(rng) for _ in range(rng.randrange(5))]
    return rng.choice([_target(rng), _target(rng), several])


def _target(rng: Random) -> Any:
    return rng.choice([*IDS, 2.0, "nobody", None, ["d1"]])


def _lines(rng: Random) -> Any:
    several = [
        rng.choice([{"of": _reference(rng)}, {"of": rng.choice(IDS)}, {}, 5])
        for _ in range(rng.randrange(4))
    ]
    return rng.choice([several, several, {"of": _reference(rng)}, None])
