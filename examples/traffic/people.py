"""Drivers and incidents."""

from __future__ import annotations

import math
import random
from collections import deque
from dataclasses import dataclass, field

from examples.traffic.city import City, Point

NAMES = ("Ada", "Ben", "Cleo", "Dev", "Eva", "Finn", "Gus", "Hana", "Ivo", "June", "Kai", "Lena")
COLOURS = (
    "#4cc9f0",
    "#f9c74f",
    "#90be6d",
    "#f9844a",
    "#b197fc",
    "#ff8fab",
    "#43aa8b",
    "#e0aaff",
    "#ffd6a5",
    "#a0c4ff",
    "#caffbf",
    "#fdffb6",
)
#: A kind of incident: name, symbol, colour, and range in metres.
KINDS = {
    "accident": ("✖", "#ff4d6d", 160.0),
    "roadworks": ("▲", "#ffa94d", 120.0),
    "jam": ("●", "#ffd43b", 220.0),
    "ice": ("✱", "#74c0fc", 260.0),
}
SPEED_M_S = (22.0, 38.0)
TRAIL = 90
#: How long a notification is shown.
SHOWN_S = 4.0
#: How long an incident, or the memory of one, lasts.
INCIDENT_S = 20.0


@dataclass
class Driver:
    """A driver on the way from crossing to crossing."""

    name: str
    colour: str
    here: tuple[int, int]
    goal: tuple[int, int]
    speed_m_s: float
    driven_m: float = 0.0
    at: Point = (0.0, 0.0)
    heading: Point = (1.0, 0.0)
    trail: deque[Point] = field(default_factory=lambda: deque(maxlen=TRAIL))
    #: The number of the current subscription, and when the next one is due.
    n_subscriptions: int = 0
    subscribes_at_s: float = 0.0
    #: Incidents that the driver was recently notified of, with the time.
    warned: dict[str, float] = field(default_factory=dict)

    def drive(self, city: City, seconds: float, rng: random.Random) -> None:
        """Continue along the street, and choose the next one at a crossing."""
        self.driven_m += self.speed_m_s * seconds
        start, end = city.crossing(*self.here), city.crossing(*self.goal)
        length = math.dist(start, end)
        while self.driven_m >= length:
            self.driven_m -= length
            before, self.here = self.here, self.goal
            ways = [way for way in city.neighbours(*self.here) if way != before]
            self.goal = rng.choice(ways)
            start, end = city.crossing(*self.here), city.crossing(*self.goal)
            length = math.dist(start, end)
        share = self.driven_m / length
        self.heading = ((end[0] - start[0]) / length, (end[1] - start[1]) / length)
        self.at = tuple(a + (b - a) * share for a, b in zip(start, end, strict=True))  # type: ignore[assignment]
        self.trail.append(self.at)

    def is_warned(self, now_s: float) -> bool:
        return any(now_s - moment < SHOWN_S for moment in self.warned.values())


@dataclass(frozen=True)
class Incident:
    """An event that drivers should know of."""

    name: str
    kind: str
    at: Point
    radius_m: float
    since_s: float

    def fades(self, now_s: float) -> float:
        """Return the remaining part of its duration, from 1 to 0."""
        return max(0.0, 1.0 - (now_s - self.since_s) / INCIDENT_S)


def drivers(city: City, count: int, rng: random.Random) -> list[Driver]:
    """Place drivers on streets."""
    placed = []
    for number in range(count):
        here = (rng.randrange(len(city.columns)), rng.randrange(len(city.rows)))
        placed.append(
            Driver(
                name=NAMES[number % len(NAMES)] + ("" if number < len(NAMES) else str(number)),
                colour=COLOURS[number % len(COLOURS)],
                here=here,
                goal=rng.choice(city.neighbours(*here)),
                speed_m_s=rng.uniform(*SPEED_M_S),
                subscribes_at_s=rng.uniform(0, 2),
            )
        )
    return placed
