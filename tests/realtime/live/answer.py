"""What a client makes of a subscription's frames, as the protocol says it should."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.realtime.client import Client, Frame

ABOUT = ("result", "ready", "event", "reset", "status", "end", "error")


@dataclass
class Answer:
    """The current answer of one subscription, kept up to date by its frames."""

    client: Client
    name: str
    items: list[Any] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    ready: bool = False
    state: str = "live"
    resume: str = ""
    seq: int = 0
    _parts: list[Any] = field(default_factory=list)

    @property
    def documents(self) -> list[Any]:
        return [item["document"] for item in self.items]

    @property
    def events(self) -> list[Frame]:
        return [frame for frame in self.frames if frame["type"] == "event"]

    def take(self, timeout_s: float = 10.0) -> Frame:
        """Take the next frame of the subscription."""
        frame = self.client.wait_for(
            lambda f: f["type"] in ABOUT and f.get("id") == self.name, timeout_s=timeout_s
        )
        self.frames.append(frame)
        getattr(self, f"_{frame['type']}")(frame)
        self.resume = frame.get("resume") or self.resume
        return frame

    def until(self, kind: str, timeout_s: float = 10.0) -> Frame:
        """Take frames up to the next one of a kind."""
        while True:
            frame = self.take(timeout_s)
            if frame["type"] == kind:
                return frame

    def until_shows(self, wanted: list[Any], timeout_s: float = 10.0) -> None:
        """Take frames until the answer is this."""
        while self.documents != wanted:
            self.take(timeout_s)

    def _result(self, frame: Frame) -> None:
        if frame["part"] == 0:
            self._parts = []
        self._parts += frame["items"]
        if frame["last"]:
            self.items = self._parts

    def _ready(self, frame: Frame) -> None:
        self.ready = True

    def _reset(self, frame: Frame) -> None:
        self.seq, self.ready = 0, False

    def _status(self, frame: Frame) -> None:
        self.state = frame["state"]

    def _end(self, frame: Frame) -> None:
        self.ready = False

    def _error(self, frame: Frame) -> None:
        raise AssertionError(frame)

    def _event(self, frame: Frame) -> None:
        self.seq += 1
        assert frame["seq"] == self.seq, "seq has no hole"
        item = {"id": frame["key"], "version": frame["version"], "document": frame.get("document")}
        held = [place for place, one in enumerate(self.items) if one["id"] == frame["key"]]
        match frame["match"]:
            case "add":
                assert not held, frame
                self._put(frame.get("index"), item)
            case "change" | "changeIndex":
                (place,) = held
                assert self.items[place]["version"] < frame["version"], frame
                self.items.pop(place)
                self._put(frame.get("index", place), item)
            case "remove":
                (place,) = held
                assert frame["reason"] in ("deleted", "left")
                assert "document" not in frame
                self.items.pop(place)
            case other:
                raise AssertionError(other)

    def _put(self, index: int | None, item: Any) -> None:
        if index is None:
            self.items.append(item)
            self.items.sort(key=lambda one: str(one["id"]))
        else:
            self.items.insert(index, item)


def subscribe(client: Client, name: str, **members: object) -> Answer:
    """Subscribe, and wait until the grid watches."""
    answer = begin(client, name, **members)
    answer.until("ready")
    return answer


def begin(client: Client, name: str, **members: object) -> Answer:
    client.say(type="subscribe", id=name, **members)
    return Answer(client, name)
