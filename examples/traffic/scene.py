"""The state of the city: one step of time, and Rillbase's notifications."""

from __future__ import annotations

import math
import random
import secrets
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Any

from examples.traffic.city import City, in_city, on_earth
from examples.traffic.people import INCIDENT_S, KINDS, Driver, Incident, drivers
from examples.traffic.rillbase import Frame, Line

#: The range of a driver's subscription, and how often it is renewed.
AROUND_M, SUBSCRIBE_EVERY_S = 420.0, 5.0
PAST, NEXT = "-10s", "+10s"
LOG_LINES = 100


@dataclass(frozen=True)
class Notification:
    """A driver was notified of an incident."""

    driver: Driver
    incident: Incident
    #: Whether it had happened before the driver subscribed.
    past: bool
    metres: float
    at_s: float


@dataclass
class Scene:
    """City, drivers, incidents, and notifications."""

    line: Line
    rng: random.Random
    city: City
    drivers: list[Driver]
    every_s: float
    incidents: dict[str, Incident] = field(default_factory=dict)
    notifications: deque[Notification] = field(default_factory=lambda: deque(maxlen=LOG_LINES))
    published: int = 0
    n_subscriptions: int = 0
    notified_past: int = 0
    notified_later: int = 0
    next_incident_s: float = 0.0

    @classmethod
    def create(cls, line: Line, *, count: int, every_s: float, seed: int) -> Scene:
        rng = random.Random(seed)  # noqa: S311 -- a city is no secret
        city = City.built(rng)
        return cls(line, rng, city, drivers(city, count, rng), every_s)

    def step(self, seconds: float) -> None:
        """Move all drivers, subscribe, publish incidents, then process Rillbase's messages."""
        now_s = time.monotonic()
        for driver in self.drivers:
            driver.drive(self.city, seconds, self.rng)
            if now_s >= driver.subscribes_at_s:
                self._subscribe(driver, now_s)
        if now_s >= self.next_incident_s:
            self._publish_incident(now_s)
            self.next_incident_s = now_s + self.rng.expovariate(1 / self.every_s)
        for name in [n for n, i in self.incidents.items() if i.fades(now_s) == 0]:
            del self.incidents[name]
        for frame in self.line.received():
            self._process(frame, now_s)

    def _subscribe(self, driver: Driver, now_s: float) -> None:
        """Subscribe to incidents around the driver: of the past ten seconds and the next ten."""
        before, driver.n_subscriptions = (
            f"{driver.name}/{driver.n_subscriptions}",
            driver.n_subscriptions + 1,
        )
        if driver.n_subscriptions > 1:
            self.line.say(type="unsubscribe", id=before)
        self.line.say(
            type="subscribe",
            id=f"{driver.name}/{driver.n_subscriptions}",
            topic=self.line.topic,
            geo={"center": on_earth(driver.at), "radius_m": AROUND_M},
            subscriber=driver.name,
            unseen_only=True,
            **{"from": PAST, "to": NEXT},
        )
        self.n_subscriptions += 1
        driver.subscribes_at_s = now_s + SUBSCRIBE_EVERY_S

    def _publish_incident(self, now_s: float) -> None:
        kind, at = self.rng.choice(list(KINDS)), self.city.somewhere(self.rng)
        name, radius_m = secrets.token_hex(8), KINDS[kind][2]
        self.incidents[name] = Incident(name, kind, at, radius_m, now_s)
        self.line.say(
            type="publish",
            id=f"incident/{self.published}",
            topic=self.line.topic,
            publication_id=name,
            geo={"center": on_earth(at), "radius_m": radius_m},
            data={"kind": kind},
            expires_in_s=INCIDENT_S,
        )
        self.published += 1

    def _process(self, frame: Frame, now_s: float) -> None:
        name = str(frame.get("id") or "").partition("/")[0]
        driver = next((d for d in self.drivers if d.name == name), None)
        if driver is None:
            return
        if frame["type"] == "result":
            for item in frame["items"]:
                self._record_notification(driver, item["id"], item, now_s, past=True)
        elif frame["type"] == "event":
            self._record_notification(driver, frame["key"], frame, now_s, past=False)

    def _record_notification(
        self, driver: Driver, name: str, publication: dict[str, Any], now_s: float, *, past: bool
    ) -> None:
        incident = self.incidents.get(name)
        if incident is None:
            circle, kind = publication["geo"], publication["document"]["kind"]
            at = in_city(*circle["center"])
            incident = Incident(name, kind, at, circle["radius_m"], now_s)
            self.incidents[name] = incident
        driver.warned[name] = now_s
        metres = math.dist(driver.at, incident.at)
        self.notifications.appendleft(Notification(driver, incident, past, metres, now_s))
        self.notified_past += past
        self.notified_later += not past
