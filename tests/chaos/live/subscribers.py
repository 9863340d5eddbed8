"""Subscribers over WebSockets and Server-Sent Events, some of them slow or restless."""

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

from tests.chaos.live.report import RunReport
from tests.chaos.live.rules import Rules
from tests.realtime.client import Client, opened
from tests.realtime.held_answer import SUBSCRIPTION_FRAMES, Frame, HeldAnswer

#: A heartbeat or an answer is due every ten seconds; a client reconnects after a longer silence.
SILENCE_S = 30.0
#: How long a read waits before it checks whether the run is over.
POLL_S = 1.0
KEPT_FRAMES = 60
CONNECTION_ERRORS = (requests.RequestException, WebSocketException, OSError, TimeoutError)
#: Queries with one of these have ordered answers.
PLACED = {"sort", "limit", "offset", "group", "lookup"}
#: Codes with which a server may end or refuse a subscription while a part of it is down.
EXCUSES = {"unavailable", "rate_limited", "internal_error", "timeout"}


class Unavailable(Exception):
    """The server is unavailable at the moment."""


@dataclass(frozen=True)
class Habits:
    """The query of a subscriber, and how it subscribes."""

    collection: str
    query: dict[str, Any]
    credentials: dict[str, str]
    options: dict[str, Any] = field(default_factory=dict)
    by_events: bool = False
    slow: bool = False
    restless: bool = False
    anonymous: bool = False

    @property
    def ordered(self) -> bool:
        """Whether the order of rows matters."""
        near = "$near" in json.dumps(self.query["filter"])
        return near or bool(self.query.keys() & PLACED)


@dataclass(frozen=True)
class View:
    """A snapshot of what a subscriber holds."""

    items: list[Any]
    #: When its state became `live`, and when the last frame arrived.
    live_since_s: float | None
    received_s: float


class Subscriber(threading.Thread):
    """One client that reconnects, to any server, until the run is over."""

    def __init__(
        self, number: int, habits: Habits, urls: list[str], rules: Rules, report: RunReport
    ) -> None:
        super().__init__(name=f"subscriber-{number}", daemon=True)
        self.habits = habits
        self.over = threading.Event()
        self.hurry = threading.Event()
        self._rules = rules
        self._rng = Random(f"{report.seed} subscriber {number}")
        self._urls = urls
        self._report = report
        self._lock = threading.Lock()
        self._held = self._empty_answer()
        self._live_since_s: float | None = None
        self._heard_s = time.monotonic()
        self._frames: deque[str] = deque(maxlen=KEPT_FRAMES)

    def view(self) -> View:
        with self._lock:
            return View(list(self._held.items), self._live_since_s, self._heard_s)

    def transcript(self) -> str:
        """Return the last frames as text."""
        with self._lock:
            return "\n".join([f"{self.name} {self.habits}", *self._frames])

    def run(self) -> None:
        while not self.over.is_set():
            try:
                self._follow()
            except Unavailable as unavailable:
                self._note(str(unavailable))
            except CONNECTION_ERRORS as error:
                self._note(f"connection lost: {type(error).__name__} {str(error)[:80]}")
            except AssertionError as violation:
                self._report.fault(self.name, str(violation))
                self._report.record(self.name, self.transcript())
                self._clear()
            with self._lock:
                self._held.disconnect()
                self._live_since_s = None
            self._report.count("connections")
            self.over.wait(0.2)

    def _follow(self) -> None:
        frames_left = self._rng.randrange(20, 120) if self.habits.restless else None
        connection = self._events() if self.habits.by_events else self._socket()
        with connection as frames:
            for frame in frames:
                self._take(frame)
                frames_left = None if frames_left is None else frames_left - 1
                if self.over.is_set() or frames_left == 0:
                    return
                if self.habits.slow and not self.hurry.is_set():
                    self.hurry.wait(self._rng.random() / 4)

    def _take(self, frame: Frame) -> None:
        kind = frame["type"]
        if kind == "goodbye":
            raise Unavailable("goodbye")
        if kind not in SUBSCRIPTION_FRAMES:
            return
        self._note(json.dumps(frame)[:600])
        self._report.count(f"frames: {kind}")
        if kind in ("end", "error"):
            self._reject(frame)
        if self.habits.anonymous:
            self._rules.check(frame)
        with self._lock:
            self._held.take(frame)
            live = self._held.ready and self._held.state == "live"
            self._live_since_s = (self._live_since_s or time.monotonic()) if live else None
            self._heard_s = time.monotonic()

    def _reject(self, frame: Frame) -> None:
        code = (frame.get("error") or {}).get("code")
        self._report.count(f"refused: {code}")
        if code not in EXCUSES:
            self._report.fault(self.name, f"{frame}")
            self._report.record(self.name, self.transcript())
        raise Unavailable(f"refused: {frame}")

    def _clear(self) -> None:
        """Discard the answer, so that the next subscription starts from scratch."""
        with self._lock:
            self._held = self._empty_answer()

    def _empty_answer(self) -> HeldAnswer:
        return HeldAnswer(looks_up="lookup" in self.habits.query)

    def _note(self, line: str) -> None:
        with self._lock:
            self._frames.append(f"{time.monotonic():.2f} {line}")

    @contextmanager
    def _socket(self) -> Iterator[Iterator[Frame]]:
        with opened(self._rng.choice(self._urls)) as client:
            client.send(type="hello", **self.habits.credentials)
            if (welcome := client.next())["type"] != "welcome":
                raise Unavailable(f"not welcome: {welcome}")
            members = {"collection": self.habits.collection, **self.habits.query}
            if self.habits.options:
                members["options"] = self.habits.options
            if self._held.resume:
                members["resume"] = self._held.resume
            client.send(type="subscribe", id="s", **members)
            yield self._until_silence(client)

    def _until_silence(self, client: Client) -> Iterator[Frame]:
        received_s = sent_s = time.monotonic()
        while not self.over.is_set():
            try:
                yield client.next(POLL_S)
                received_s = sent_s = time.monotonic()
            except TimeoutError:
                now_s = time.monotonic()
                if now_s - received_s > SILENCE_S:
                    raise
                if now_s - sent_s > SILENCE_S / 3:
                    client.send(type="ping", id="p")
                    sent_s = now_s

    @contextmanager
    def _events(self) -> Iterator[Iterator[Frame]]:
        members = {name: json.dumps(value) for name, value in self.habits.query.items()}
        if self.habits.options:
            members["options"] = json.dumps(self.habits.options)
        headers = bearer(self.habits.credentials)
        if self._held.resume:
            headers["Last-Event-ID"] = self._held.resume
        url = f"{self._rng.choice(self._urls)}/v1/collections/{self.habits.collection}/live"
        with requests.get(
            url, params=members, headers=headers, stream=True, timeout=SILENCE_S
        ) as answer:
            if answer.status_code != 200:
                self._reject({"error": answer.json()})
            yield self._parse(answer)

    @staticmethod
    def _parse(answer: requests.Response) -> Iterator[Frame]:
        for line in answer.iter_lines(chunk_size=1):
            if line.startswith(b"data: "):
                frame: Frame = json.loads(line.removeprefix(b"data: "))
                yield frame


def bearer(credentials: dict[str, str]) -> dict[str, str]:
    """Return the headers that authenticate a REST call."""
    if "token" in credentials:
        return {"Authorization": f"Bearer {credentials['token']}"}
    return {"Rillbase-Key": credentials["key"]}
