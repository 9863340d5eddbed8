"""Clients that watch, over WebSockets and Server-Sent Events; slow and restless ones among them."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

import requests
from websockets.exceptions import WebSocketException

from tests.chaos.live.rules import Rules
from tests.chaos.live.story import Story
from tests.realtime.client import Client, opened
from tests.realtime.held import ABOUT, Frame, Held

#: A heartbeat or an answer is due every ten seconds: who hears nothing for longer comes back.
SILENCE_S = 30.0
#: How long a read waits before it looks whether the run is over.
LOOK_S = 1.0
KEPT_FRAMES = 60
AWAY = (requests.RequestException, WebSocketException, OSError, TimeoutError)
#: Queries with one of these tell the places of rows.
PLACED = {"sort", "limit", "offset", "group", "lookup"}
#: Why a server may end or refuse a subscription while it or what is behind it is being killed.
EXCUSES = {"unavailable", "rate_limited", "internal_error", "timeout"}


class Away(Exception):
    """The server does not serve at the moment."""


@dataclass(frozen=True)
class Habits:
    """How a subscriber watches."""

    collection: str
    question: dict[str, Any]
    credentials: dict[str, str]
    options: dict[str, Any] = field(default_factory=dict)
    by_events: bool = False
    slow: bool = False
    restless: bool = False
    anonymous: bool = False

    @property
    def ordered(self) -> bool:
        """Whether the places of rows count."""
        near = "$near" in json.dumps(self.question["filter"])
        return near or bool(self.question.keys() & PLACED)


@dataclass(frozen=True)
class View:
    """What a subscriber holds at a moment."""

    items: list[Any]
    #: Since when it has been told that this is the present, and when it last heard of a change.
    live_since_s: float | None
    heard_s: float


class Subscriber(threading.Thread):
    """One client that comes back, to any server, for as long as the run goes on."""

    def __init__(
        self, number: int, habits: Habits, urls: list[str], rules: Rules, story: Story
    ) -> None:
        super().__init__(name=f"subscriber-{number}", daemon=True)
        self.habits = habits
        self.over = threading.Event()
        self.hurry = threading.Event()
        self._rules = rules
        self._chance = Random(f"{story.seed} subscriber {number}")
        self._urls = urls
        self._story = story
        self._lock = threading.Lock()
        self._held = self._nothing()
        self._live_since_s: float | None = None
        self._heard_s = time.monotonic()
        self._frames: deque[str] = deque(maxlen=KEPT_FRAMES)

    def view(self) -> View:
        with self._lock:
            return View(list(self._held.items), self._live_since_s, self._heard_s)

    def told(self) -> str:
        """Return the last frames, for the story."""
        with self._lock:
            return "\n".join([f"{self.name} {self.habits}", *self._frames])

    def run(self) -> None:
        while not self.over.is_set():
            try:
                self._watch()
            except Away as away:
                self._note(str(away))
            except AWAY as gone:
                self._note(f"connection lost: {type(gone).__name__} {str(gone)[:80]}")
            except AssertionError as broken:
                self._story.fault(self.name, str(broken))
                self._story.tell(self.name, self.told())
                self._forget()
            with self._lock:
                self._held.interrupted()
                self._live_since_s = None
            self._story.count("connections")
            self.over.wait(0.2)

    def _watch(self) -> None:
        left = self._chance.randrange(20, 120) if self.habits.restless else None
        way = self._events() if self.habits.by_events else self._socket()
        with way as frames:
            for frame in frames:
                self._take(frame)
                left = None if left is None else left - 1
                if self.over.is_set() or left == 0:
                    return
                if self.habits.slow and not self.hurry.is_set():
                    self.hurry.wait(self._chance.random() / 4)

    def _take(self, frame: Frame) -> None:
        kind = frame["type"]
        if kind == "goodbye":
            raise Away("goodbye")
        if kind not in ABOUT:
            return
        self._note(json.dumps(frame)[:600])
        self._story.count(f"frames: {kind}")
        if kind in ("end", "error"):
            self._refused(frame)
        if self.habits.anonymous:
            self._rules.check(frame)
        with self._lock:
            self._held.take(frame)
            live = self._held.ready and self._held.state == "live"
            self._live_since_s = (self._live_since_s or time.monotonic()) if live else None
            self._heard_s = time.monotonic()

    def _refused(self, frame: Frame) -> None:
        code = (frame.get("error") or {}).get("code")
        self._story.count(f"refused: {code}")
        if code not in EXCUSES:
            self._story.fault(self.name, f"{frame}")
            self._story.tell(self.name, self.told())
        raise Away(f"refused: {frame}")

    def _forget(self) -> None:
        """Begin again with nothing."""
        with self._lock:
            self._held = self._nothing()

    def _nothing(self) -> Held:
        return Held(looks_up="lookup" in self.habits.question)

    def _note(self, line: str) -> None:
        with self._lock:
            self._frames.append(f"{time.monotonic():.2f} {line}")

    @contextmanager
    def _socket(self) -> Iterator[Iterator[Frame]]:
        with opened(self._chance.choice(self._urls)) as client:
            client.say(type="hello", **self.habits.credentials)
            if (welcome := client.next())["type"] != "welcome":
                raise Away(f"not welcome: {welcome}")
            asked = {"collection": self.habits.collection, **self.habits.question}
            if self.habits.options:
                asked["options"] = self.habits.options
            if self._held.resume:
                asked["resume"] = self._held.resume
            client.say(type="subscribe", id="s", **asked)
            yield self._until_silence(client)

    def _until_silence(self, client: Client) -> Iterator[Frame]:
        heard_s = asked_s = time.monotonic()
        while not self.over.is_set():
            try:
                yield client.next(LOOK_S)
                heard_s = asked_s = time.monotonic()
            except TimeoutError:
                now_s = time.monotonic()
                if now_s - heard_s > SILENCE_S:
                    raise
                if now_s - asked_s > SILENCE_S / 3:
                    client.say(type="ping", id="p")
                    asked_s = now_s

    @contextmanager
    def _events(self) -> Iterator[Iterator[Frame]]:
        asked = {name: json.dumps(value) for name, value in self.habits.question.items()}
        if self.habits.options:
            asked["options"] = json.dumps(self.habits.options)
        headers = bearer(self.habits.credentials)
        if self._held.resume:
            headers["Last-Event-ID"] = self._held.resume
        url = f"{self._chance.choice(self._urls)}/v1/collections/{self.habits.collection}/live"
        with requests.get(
            url, params=asked, headers=headers, stream=True, timeout=SILENCE_S
        ) as answer:
            if answer.status_code != 200:
                self._refused({"error": answer.json()})
            yield self._parsed(answer)

    @staticmethod
    def _parsed(answer: requests.Response) -> Iterator[Frame]:
        for line in answer.iter_lines(chunk_size=1):
            if line.startswith(b"data: "):
                frame: Frame = json.loads(line.removeprefix(b"data: "))
                yield frame


def bearer(credentials: dict[str, str]) -> dict[str, str]:
    """Return what a REST call says instead of `hello`."""
    if "token" in credentials:
        return {"Authorization": f"Bearer {credentials['token']}"}
    return {"Rillbase-Key": credentials["key"]}
