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
    made = copy.deepcopy(body)
    for path, value in change.get("$set", {}).items():
        parent, _, name = path.rpartition(".")
        (made.setdefault(parent, {}) if parent else made)[name] = copy.deepcopy(value)
    for path in change.get("$unset", {}):
        parent, _, name = path.rpartition(".")
        inside = made.get(parent) if parent else made
        if isinstance(inside, dict):
            inside.pop(name, None)
    return made


def merged(body: Document, change: Document) -> Document:
    """Apply a merge patch."""
    made = dict(body)
    for name, value in change.items():
        before = made.pop(name, None)
        if isinstance(value, dict):
            made[name] = merged(before if isinstance(before, dict) else {}, value)
        elif value is not None:
            made[name] = value
    return made


@dataclass
class History:
    """Draws writes, and keeps the documents that result."""

    chance: Random
    bodies: dict[Place, Document] = field(default_factory=dict)

    def take(self, writes: Sequence[Write]) -> None:
        for write in writes:
            after = write.applied(self.bodies.get(write.place))
            if after is None:
                del self.bodies[write.place]
            else:
                self.bodies[write.place] = after

    def one(self) -> Write:
        return self._drawn(self.chance.choice(SIDES), self.bodies, alone=True)

    def batch(self, sides: Sequence[str]) -> list[Write]:
        """Draw the writes of one batch; some change the same document."""
        scratch = History(self.chance, dict(self.bodies))
        writes = []
        for _ in range(self.chance.randrange(1, 7)):
            write = scratch._drawn(self.chance.choice(sides), scratch.bodies, alone=False)
            scratch.take([write])
            writes.append(write)
        return writes

    def forbidden(self) -> Write | None:
        """Draw an insert that is rejected because its document exists."""
        if not self.bodies:
            return None
        side, key = self.chance.choice(list(self.bodies))
        return Write(side, key, "insert", drawn_document(self.chance))

    def _drawn(self, side: str, bodies: dict[Place, Document], *, alone: bool) -> Write:
        chance, key = self.chance, self.chance.choice(IDS)
        body = bodies.get((side, key))
        if body is None:
            kind: Literal["insert", "replace"] = chance.choice(["insert", "replace"])
            return Write(side, key, kind, drawn_document(chance))
        match chance.randrange(8):
            case 0 | 1:
                return Write(side, key, "delete")
            case 2:
                return Write(side, key, "replace", drawn_document(chance))
            case 3 | 4 if alone:
                return Write(side, key, "merge", drawn_patch(chance))
            case _:
                return Write(side, key, "update", drawn_update(chance, body))


def drawn_update(chance: Random, body: Document) -> Document:
    fresh = drawn_document(chance)
    names = chance.sample(sorted(fresh), min(len(fresh), chance.randrange(1, 4)))
    change = {"$set": {name: fresh[name] for name in names}}
    gone = [name for name in ("n", "kind", "tags", "ref", "public") if name not in names]
    change["$unset"] = dict.fromkeys(chance.sample(gone, min(len(gone), chance.randrange(3))), "")
    if "nested" not in names:
        if isinstance(body.get("nested", {}), dict) and chance.random() < 0.5:
            change["$set"]["nested.x"] = drawn_number(chance)
        elif chance.random() < 0.5:
            change["$unset"]["nested.x"] = ""
    return {operator: paths for operator, paths in change.items() if paths}


def drawn_patch(chance: Random) -> Document:
    fresh = drawn_document(chance)
    if chance.random() < 0.3:
        fresh["nested"] = {"x": chance.choice([None, drawn_number(chance)])}
    names = chance.sample(sorted(fresh), min(len(fresh), chance.randrange(1, 4)))
    return {name: None if chance.random() < 0.3 else fresh[name] for name in names}


def drawn_document(chance: Random) -> Document:
    """Draw a document without an id; each of its fields may be missing."""
    fields = {
        "n": _n(chance),
        "kind": chance.choice(["a", "b", "a b", 1, 1.0, 2, True, None, ["a"], ["a", "b"], []]),
        "tags": chance.sample(["a", "b", "c"], chance.randrange(4)),
        "nested": _nested(chance),
        "ref": _reference(chance),
        "lines": _lines(chance),
        "public": chance.choice([True, True, True, False, None]),
    }
    # At least one field is present, for an update to set.
    kept = chance.choice(sorted(fields))
    return {name: one for name, one in fields.items() if name == kept or chance.random() < 0.8}


def drawn_number(chance: Random) -> float:
    match chance.randrange(6):
        case 0:
            return chance.choice(FRACTIONS)
        case 1:
            return chance.gauss(0, 100)
        case 2:
            return chance.choice(LARGE)
        case _:
            return chance.randrange(-3, 6)


def _n(chance: Random) -> Any:
    return chance.choice(NOTHING) if chance.random() < 0.2 else drawn_number(chance)


def _nested(chance: Random) -> Any:
    inner = {"x": chance.choice([drawn_number(chance), chance.randrange(3), "x", None])}
    return chance.choice([inner, inner, inner, {}, [inner, {"x": 1}], [], 7, None])


def _reference(chance: Random) -> Any:
    several = [_target(chance) for _ in range(chance.randrange(5))]
    return chance.choice([_target(chance), _target(chance), several])


def _target(chance: Random) -> Any:
    return chance.choice([*IDS, 2.0, "nobody", None, ["d1"]])


def _lines(chance: Random) -> Any:
    several = [
        chance.choice([{"of": _reference(chance)}, {"of": chance.choice(IDS)}, {}, 5])
        for _ in range(chance.randrange(4))
    ]
    return chance.choice([several, several, {"of": _reference(chance)}, None])
