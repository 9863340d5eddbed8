"""What a client holds of a subscription, as the protocol says: frames in, the answer out.

Whatever the protocol forbids fails: a hole in `seq`, a version that falls or comes twice, a change
of a row that is not held, a document in a `remove`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

Frame = dict[str, Any]
ABOUT = ("result", "ready", "event", "reset", "status", "end", "error")


@dataclass
class Held:
    """The answer of one subscription, kept up to date by its frames."""

    items: list[Any] = field(default_factory=list)
    #: The last event's number, and the token that resumes right after it.
    seq: int = 0
    resume: str = ""
    ready: bool = False
    state: str = "live"
    ended: Frame | None = None
    #: Documents are shown with others, which change without them: a version may come again.
    looks_up: bool = False
    #: The newest version that was named of each key since the last reset.
    _named: dict[str, int] = field(default_factory=dict)
    _parts: list[Any] = field(default_factory=list)
    #: The events of a group that is not whole yet.
    _group: list[Frame] = field(default_factory=list)

    @property
    def documents(self) -> list[Any]:
        return [item["document"] for item in self.items]

    def take(self, frame: Frame) -> None:
        getattr(self, f"_{frame['type']}")(frame)
        if not self._group:
            self.resume = frame.get("resume") or self.resume

    def interrupted(self) -> None:
        """The connection is gone, and with it whatever was not whole."""
        self._parts, self._group, self.ready, self.state = [], [], False, "live"

    def _result(self, frame: Frame) -> None:
        assert not self._group, f"a group was not finished before {frame}"
        if frame["part"] == 0:
            self._parts = []
        self._parts += frame["items"]
        if frame["last"]:
            self.items = self._parts
            self._named = {str(item["id"]): item["version"] for item in self.items}

    def _ready(self, frame: Frame) -> None:
        # Whether it stands still is said anew from here on.
        self.ready, self.state = True, "live"

    def _reset(self, frame: Frame) -> None:
        # Where it was counts no more: whoever is cut off now, before the new result, begins anew.
        self._group, self.resume = [], ""
        self.seq, self.ready = 0, False

    def _status(self, frame: Frame) -> None:
        self.state = frame["state"]

    def _end(self, frame: Frame) -> None:
        self.ready, self.ended = False, frame

    def _error(self, frame: Frame) -> None:
        raise AssertionError(frame)

    def _event(self, frame: Frame) -> None:
        assert frame["seq"] == self.seq + len(self._group) + 1, f"seq has a hole: {frame}"
        self._group.append(frame)
        group = frame.get("txn")
        if group is not None:
            assert group["index"] == len(self._group) - 1, f"a group has a hole: {frame}"
            if len(self._group) < group["count"]:
                assert "resume" not in frame, f"an unfinished group is resumed: {frame}"
                return
        assert "resume" in frame, f"nothing resumes after {frame}"
        for event in self._group:
            self._apply(event)
        self.seq, self._group = frame["seq"], []

    def _apply(self, frame: Frame) -> None:
        item = {"id": frame["key"], "version": frame["version"], "document": frame.get("document")}
        key = _text(frame["key"])
        held = [place for place, one in enumerate(self.items) if _text(one["id"]) == key]
        named = self._named.get(str(frame["key"]), 0)
        if frame["version"] is None:
            self._apply_group(frame, item, held)
            return
        match frame["match"]:
            case "add":
                assert not held, f"{frame} is held already"
                # A row may return to a window with the version that it left with.
                in_window = frame.get("index") is not None
                assert frame["version"] >= named + (not in_window), f"{frame} after {named}"
                self._put(frame.get("index"), item)
            case "change" | "changeIndex":
                assert held, f"{frame} is not held"
                place = held[0]
                before = self.items.pop(place)
                if self.looks_up:
                    assert before["version"] <= frame["version"], (frame, before)
                    same = _shown(before) == _shown(item) and frame["index"] == place
                    assert not same, f"{frame} tells nothing new"
                else:
                    assert before["version"] < frame["version"], (frame, before)
                self._put(frame.get("index", place), item)
            case "remove":
                assert held, f"{frame} is not held"
                assert frame["version"] >= self.items[held[0]]["version"], f"{frame} after {named}"
                assert frame["reason"] in ("deleted", "left")
                assert "document" not in frame
                self.items.pop(held[0])
            case other:
                raise AssertionError(other)
        self._named[str(frame["key"])] = max(named, frame["version"])

    def _apply_group(self, frame: Frame, item: Frame, held: list[int]) -> None:
        """A row that stands for a group has no version, and always a place."""
        assert bool(held) == (frame["match"] != "add"), frame
        if held:
            assert frame["old_index"] == held[0], frame
            before = self.items.pop(held[0])
            same = _shown(before) == _shown(item) and frame["index"] == held[0]
            assert not same, f"{frame} tells nothing new"
        if frame["match"] == "remove":
            assert "document" not in frame, frame
        else:
            self._put(frame["index"], item)

    def _put(self, index: int | None, item: Any) -> None:
        if index is None:
            self.items.append(item)
            self.items.sort(key=lambda one: str(one["id"]))
        else:
            assert index <= len(self.items), (index, item)
            self.items.insert(index, item)


def _shown(item: Frame) -> tuple[int | None, str]:
    """Return what a client sees of a row, apart from its key."""
    return item["version"], _text(item["document"])


def _text(value: Any) -> str:
    """As text, in which 1, 1.0 and true are different, and so are fields in another order."""
    return json.dumps(value)
