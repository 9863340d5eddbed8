"""What a client makes of a subscription's frames: the answer as the server knows it.

It holds the protocol's promises to the letter: `seq` without holes, groups applied whole, the
resume token taken with the last frame that it covers. Nothing here knows connections or time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from rillbase.ids import key
from rillbase.order import rank
from rillbase.shapes import Document

Kind: TypeAlias = Literal["add", "change", "move", "remove"]
KINDS: dict[str, Kind] = {
    "add": "add",
    "change": "change",
    "changeIndex": "move",
    "remove": "remove",
}


@dataclass(frozen=True, slots=True)
class Item:
    """A document in an answer."""

    id: object
    version: int | None
    document: Document
    #: Whether a write that the server has not confirmed is part of what is shown.
    is_pending: bool = False
    #: Equal for equal ids.
    key: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", key(self.id))


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the answer sent by the server."""

    type: Kind
    item: Item
    #: For `remove`: whether the document is gone or only no longer part of the answer.
    reason: Literal["deleted", "left"] | None = None


class FramesBroken(Exception):
    """The frames are inconsistent: the subscription has to start over."""


@dataclass(slots=True)
class AnswerView:
    """The answer of one subscription."""

    items: list[Item] = field(default_factory=list)
    has_result: bool = False
    #: Where to resume after an interruption.
    resume: str | None = None
    _seq: int = 0
    _parts: list[Item] = field(default_factory=list)
    _group: list[Document] = field(default_factory=list)

    def interrupted(self) -> None:
        """Prepare for frames of a new connection: what was cut off comes again."""
        self._group.clear()
        self._parts = []

    def reset(self) -> None:
        """Forget where it was; a new result follows. What was shown stays until then."""
        self.interrupted()
        self._seq, self.resume = 0, None

    def result(self, frame: Document) -> Sequence[Item] | None:
        """Take a part of a result; with the last one, return what was held before."""
        if frame["part"] == 0:
            self._parts = []
        self._parts += [Item(i["id"], i["version"], i["document"]) for i in frame["items"]]
        if not frame["last"]:
            return None
        before, self.items, self._parts = self.items, self._parts, []
        self.has_result = True
        self.resume = frame.get("resume", self.resume)
        return before

    def event(self, frame: Document) -> list[Change]:
        """Take an event; the members of a group take effect together with the last of them."""
        self._group.append(frame)
        group = frame.get("txn")
        if group is not None and group["index"] < group["count"] - 1:
            return []
        frames, self._group = self._group, []
        if [f["seq"] for f in frames] != list(range(self._seq + 1, self._seq + 1 + len(frames))):
            raise FramesBroken(f"event {frames[0]['seq']} followed event {self._seq}")
        changes = [self._apply(member) for member in frames]
        self._seq += len(frames)
        self.resume = frame.get("resume", self.resume)
        return changes

    def put(self, item: Item) -> bool:
        """Take a document that its event had left out; False: it has changed since."""
        place = self._place(item.id)
        if place is None or (self.items[place].version or 0) > (item.version or 0):
            return False
        self.items[place] = item
        return True

    def _apply(self, frame: Document) -> Change:
        identity, kind = frame["key"], KINDS[frame["match"]]
        place = self._place(identity)
        held = None if place is None else self.items.pop(place)
        version: int = frame["version"]
        if kind == "remove":
            gone = Item(identity, version, {} if held is None else held.document)
            return Change(kind, gone, frame.get("reason"))
        known: Document = {} if held is None else held.document
        item = Item(identity, version, frame.get("document", known))
        index = frame.get("index")
        self.items.insert(self._by_id(identity) if index is None else index, item)
        return Change("add" if held is None else kind if kind != "add" else "change", item)

    def _place(self, identity: object) -> int | None:
        item_key = key(identity)
        return next((n for n, item in enumerate(self.items) if item.key == item_key), None)

    def _by_id(self, identity: object) -> int:
        """Answers without a window come in the order of their ids."""
        return bisect_left(self.items, rank(identity), key=lambda item: rank(item.id))


def difference(before: Sequence[Item], after: Sequence[Item]) -> list[Change]:
    """Return how one answer became the other, where no single changes are known."""
    held = {item.key: item for item in before}
    there = {item.key for item in after}
    gone = [Change("remove", item, "left") for name, item in held.items() if name not in there]
    changed = [
        Change("add" if item.key not in held else "change", item)
        for item in after
        if held.get(item.key) != item
    ]
    return [*gone, *changed]
