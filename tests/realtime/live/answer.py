"""A subscription over a WebSocket, and what its client makes of the frames."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.realtime.client import Client
from tests.realtime.held_answer import SUBSCRIPTION_FRAMES, Frame, HeldAnswer
from tests.waiting import TIMEOUT_S


@dataclass
class Answer(HeldAnswer):
    """The current answer of one subscription, kept up to date by its frames."""

    client: Client = field(kw_only=True)
    name: str = field(kw_only=True)
    frames: list[Frame] = field(default_factory=list)

    @property
    def events(self) -> list[Frame]:
        return [frame for frame in self.frames if frame["type"] == "event"]

    def next(self, timeout_s: float = TIMEOUT_S) -> Frame:
        """Take the next frame of the subscription."""
        frame = self.client.wait_for(
            lambda f: f["type"] in SUBSCRIPTION_FRAMES and f.get("id") == self.name,
            timeout_s=timeout_s,
        )
        self.frames.append(frame)
        self.take(frame)
        return frame

    def until(self, kind: str, timeout_s: float = TIMEOUT_S) -> Frame:
        """Take frames up to the next one of a kind."""
        while True:
            frame = self.next(timeout_s)
            if frame["type"] == kind:
                return frame

    def until_shows(self, expected: list[Any], timeout_s: float = TIMEOUT_S) -> None:
        """Take frames until the answer is this."""
        while self.documents != expected:
            self.next(timeout_s)


def subscribe(client: Client, name: str, **members: object) -> Answer:
    """Subscribe, and wait until the grid watches."""
    answer = begin(client, name, **members)
    answer.until("ready")
    return answer


def begin(client: Client, name: str, **members: object) -> Answer:
    client.send(type="subscribe", id=name, **members)
    return Answer(client=client, name=name, looks_up="lookup" in members)
