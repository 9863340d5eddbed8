"""Customers, their applications, servers and endpoints, and the requests that they receive."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Event = dict[str, Any]

MINUTE_MS = 60_000
CUSTOMERS = {"acme": "shop", "borealis": "maps", "cumulus": "mail"}
SERVERS = ("a", "b")
#: Endpoints with their usual latency in milliseconds and their requests per minute.
ENDPOINTS = {
    "/search": (45.0, 9.0),
    "/cart": (28.0, 6.0),
    "/pay": (90.0, 3.0),
    "/login": (18.0, 5.0),
}
#: During an incident, an endpoint takes so many times as long, for so long.
SLOWER, TROUBLE_MS = 3.2, 11 * MINUTE_MS
#: How often an incident occurs, on average.
TROUBLE_EVERY_MS = 14 * MINUTE_MS


@dataclass(slots=True)
class Endpoint:
    """One endpoint of one customer's application."""

    customer: str
    app: str
    path: str
    latency_ms: float
    per_minute: float
    #: The end of its incident.
    trouble_until_ms: float = 0.0

    def request(self, at_ms: float, luck: random.Random) -> Event:
        """Return one request."""
        slower = SLOWER if at_ms < self.trouble_until_ms else 1.0
        latency = self.latency_ms * slower * math.exp(luck.gauss(0, 0.22))
        return {
            "customer": self.customer,
            "app": self.app,
            "server": luck.choice(SERVERS),
            "endpoint": self.path,
            "at": round(at_ms),
            "latency_ms": round(latency, 2),
        }


@dataclass(slots=True)
class World:
    """Time passes, and requests arrive."""

    now_ms: float
    luck: random.Random
    endpoints: list[Endpoint] = field(default_factory=list)

    @classmethod
    def begun(cls, now_ms: float, seed: int) -> World:
        """Begin at a moment."""
        luck = random.Random(seed)  # noqa: S311 -- a play
        endpoints = [
            Endpoint(customer, app, path, usual * luck.uniform(0.7, 1.4), rate)
            for customer, app in CUSTOMERS.items()
            for path, (usual, rate) in ENDPOINTS.items()
        ]
        return cls(now_ms, luck, endpoints)

    def step(self, until_ms: float) -> Iterator[Event]:
        """Let time pass. Yield the requests that arrived meanwhile."""
        passed_ms = until_ms - self.now_ms
        if self.luck.random() < passed_ms / TROUBLE_EVERY_MS:
            self.luck.choice(self.endpoints).trouble_until_ms = until_ms + TROUBLE_MS
        for endpoint in self.endpoints:
            expected = endpoint.per_minute * passed_ms / MINUTE_MS
            count = int(expected) + (self.luck.random() < expected % 1)
            for _ in range(count):
                at_ms = self.now_ms + self.luck.random() * passed_ms
                yield endpoint.request(at_ms, self.luck)
        self.now_ms = until_ms
