"""Computes the answer from a subscription's frames, as the server knows it.

It relies on the protocol's guarantees: `seq` has no gaps, groups are applied as a whole, and the
resume token is taken with the last frame that it covers. It does not depend on connections or time.
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
    #: Whether it includes a write that the server has not confirmed.
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
    #: For `remove`: whether the document was deleted or only left the answer.
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
        """Prepare for the frames of a new connection: incomplete parts are sent again."""
        self._group.clear()
        self._parts = []

    def reset(self) -> None:
        """Discard the position; a new result follows. The answer stays unchanged until then."""
        self.interrupted()
        self._seq, self.resume = 0, None

    def result(self, frame: Document) -> Sequence[Item] | None:
        """Add a part of a result; after the last one, return the previous answer."""
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
        """Process an event; the members of a group take effect together with the last of them."""
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
        """Insert a document that its event had omitted; False: it has changed since."""
        index = self._index_of(item.id)
        if index is None or (self.items[index].version or 0) > (item.version or 0):
            return False
        self.items[index] = item
        return True

    def _apply(self, frame: Document) -> Change:
        identity, kind = frame["key"], KINDS[frame["match"]]
        index = self._index_of(identity)
        current = None if index is None else self.items.pop(index)
        version: int = frame["version"]
        if kind == "remove":
            removed = Item(identity, version, {} if current is None else current.document)
            return Change(kind, removed, frame.get("reason"))
        known: Document = {} if current is None else current.document
        item = Item(identity, version, frame.get("document", known))
        index = frame.get("index")
        self.items.insert(self._by_id(identity) if index is None else index, item)
        return Change("add" if current is None else kind if kind != "add" else "change", item)

    def _index_of(self, identity: object) -> int | None:
        item_key = key(identity)
        return next((n for n, item in enumerate(self.items) if item.key == item_key), None)

    def _by_id(self, identity: object) -> int:
        """Answers without a window are ordered by id."""
        return bisect_left(self.items, rank(identity), key=lambda item: rank(item.id))


def difference(before: Sequence[Item], after: Sequence[Item]) -> list[Change]:
    """Return the differences between two answers, if no single changes are known."""
    current = {item.key: item for item in before}
    there = {item.key for item in after}
    removed = [
        Change("remove", item, "left") for name, item in current.items() if name not in there
    ]
    changed = [
        Change("add" if item.key not in current else "change", item)
        for item in after
        if current.get(item.key) != item
    ]
    return [*removed, *changed]
