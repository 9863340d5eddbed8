"""The answer that a client holds, maintained from the frames of its subscription.

A violation of the protocol fails: a gap in `seq`, a version that decreases or repeats, a change of
a row that is not held, a document in a `remove`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

Frame = dict[str, Any]
SUBSCRIPTION_FRAMES = ("result", "ready", "event", "reset", "status", "end", "error")


@dataclass
class HeldAnswer:
    """The answer of one subscription, kept up to date by its frames."""

    items: list[Any] = field(default_factory=list)
    #: The number of the last event, and the token that resumes after it.
    seq: int = 0
    resume: str = ""
    ready: bool = False
    state: str = "live"
    ended: Frame | None = None
    #: With lookups, a row may change without a new version of its own document.
    looks_up: bool = False
    #: The newest version received for each key since the last reset.
    _versions: dict[str, int] = field(default_factory=dict)
    _parts: list[Any] = field(default_factory=list)
    #: The events of a group that is still incomplete.
    _group: list[Frame] = field(default_factory=list)

    @property
    def documents(self) -> list[Any]:
        return [item["document"] for item in self.items]

    def take(self, frame: Frame) -> None:
        getattr(self, f"_{frame['type']}")(frame)
        if not self._group:
            self.resume = frame.get("resume") or self.resume

    def disconnect(self) -> None:
        """Discard what is incomplete, as the connection is lost."""
        self._parts, self._group, self.ready, self.state = [], [], False, "live"

    def _result(self, frame: Frame) -> None:
        assert not self._group, f"a group is incomplete before {frame}"
        if frame["part"] == 0:
            self._parts = []
        self._parts += frame["items"]
        if frame["last"]:
            self.items = self._parts
            self._versions = {str(item["id"]): item["version"] for item in self.items}

    def _ready(self, frame: Frame) -> None:
        # The server reports again from here on whether the query is stale.
        self.ready, self.state = True, "live"

    def _reset(self, frame: Frame) -> None:
        # The old position is void: a client that loses its connection now starts from scratch.
        self._group, self.resume = [], ""
        self.seq, self.ready = 0, False

    def _status(self, frame: Frame) -> None:
        self.state = frame["state"]

    def _end(self, frame: Frame) -> None:
        self.ready, self.ended = False, frame

    def _error(self, frame: Frame) -> None:
        raise AssertionError(frame)

    def _event(self, frame: Frame) -> None:
        assert frame["seq"] == self.seq + len(self._group) + 1, f"a gap in seq: {frame}"
        self._group.append(frame)
        group = frame.get("txn")
        if group is not None:
            assert group["index"] == len(self._group) - 1, f"a gap in a group: {frame}"
            if len(self._group) < group["count"]:
                assert "resume" not in frame, f"a resume token inside a group: {frame}"
                return
        assert "resume" in frame, f"no resume token: {frame}"
        for event in self._group:
            self._apply(event)
        self.seq, self._group = frame["seq"], []

    def _apply(self, frame: Frame) -> None:
        item = {"id": frame["key"], "version": frame["version"], "document": frame.get("document")}
        key = _text(frame["key"])
        held = [place for place, one in enumerate(self.items) if _text(one["id"]) == key]
        newest = self._versions.get(str(frame["key"]), 0)
        if frame["version"] is None:
            self._apply_group(frame, item, held)
            return
        match frame["match"]:
            case "add":
                assert not held, f"{frame} is held already"
                # A row may return to a window with the version that it left with.
                in_window = frame.get("index") is not None
                assert frame["version"] >= newest + (not in_window), f"{frame} after {newest}"
                self._put(frame.get("index"), item)
            case "change" | "changeIndex":
                assert held, f"{frame} is not held"
                place = held[0]
                before = self.items.pop(place)
                if self.looks_up:
                    assert before["version"] <= frame["version"], (frame, before)
                    same = _shown(before) == _shown(item) and frame["index"] == place
                    assert not same, f"{frame} changes nothing"
                else:
                    assert before["version"] < frame["version"], (frame, before)
                self._put(frame.get("index", place), item)
            case "remove":
                assert held, f"{frame} is not held"
                assert frame["version"] >= self.items[held[0]]["version"], f"{frame} after {newest}"
                assert frame["reason"] in ("deleted", "left")
                assert "document" not in frame
                self.items.pop(held[0])
            case unknown:
                raise AssertionError(unknown)
        self._versions[str(frame["key"])] = max(newest, frame["version"])

    def _apply_group(self, frame: Frame, item: Frame, held: list[int]) -> None:
        """Apply an event of a group, whose row has no version and always an index."""
        assert bool(held) == (frame["match"] != "add"), frame
        if held:
            assert frame["old_index"] == held[0], frame
            before = self.items.pop(held[0])
            same = _shown(before) == _shown(item) and frame["index"] == held[0]
            assert not same, f"{frame} changes nothing"
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
    """Return JSON text, in which 1, 1.0 and true differ, as do fields in another order."""
    return json.dumps(value)
