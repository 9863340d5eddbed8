"""A small courier company: vans on the streets of a city, and their deliveries."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from examples.traffic.city import City, on_earth
from examples.traffic.people import Driver, drivers

Json = dict[str, Any]

VANS = 8
GOODS = {"Bread": (6, 18), "Flowers": (20, 60), "Books": (12, 45), "Wine": (25, 90)}
DISTRICTS = ("Centre", "Harbour", "Hill", "Station")
STATES = ("ready", "on the way", "delivered")
#: The average time that a delivery stays in a state.
STATE_S = 60.0
HISTORY_EVENTS, HISTORY = 1_500, timedelta(hours=24)


@dataclass
class Delivery:
    """One delivery of a van, replaced by the next one when it has arrived."""

    van: Driver
    number: int
    goods: str
    district: str
    price: int
    state: int = 0

    def document(self) -> Json:
        return {
            "_id": self.van.name.lower(),
            "van": self.van.name,
            "number": self.number,
            "goods": self.goods,
            "district": self.district,
            "price": self.price,
            "state": STATES[self.state],
        }

    def sale(self, at: datetime) -> Json:
        """Return the event that the aggregate counts."""
        return {
            "goods": self.goods,
            "district": self.district,
            "price": self.price,
            "at": at.isoformat(),
        }


@dataclass
class Company:
    """All vans and their present deliveries. The same seed gives the same company."""

    rng: random.Random
    city: City
    vans: list[Driver]
    deliveries: dict[str, Delivery] = field(default_factory=dict)
    numbers: int = 1_000

    @classmethod
    def founded(cls, seed: int) -> Company:
        rng = random.Random(seed)  # noqa: S311 -- sample data
        city = City.built(rng)
        company = cls(rng, city, drivers(city, VANS, rng))
        for van in company.vans:
            company.deliveries[van.name] = company.next_delivery(van)
        return company

    def next_delivery(self, van: Driver) -> Delivery:
        self.numbers += 1
        goods = self.rng.choice(list(GOODS))
        price = self.rng.randint(*GOODS[goods])
        return Delivery(van, self.numbers, goods, self.rng.choice(DISTRICTS), price)

    def history(self, now: datetime) -> list[Json]:
        """Return the sales of the last day."""
        return [
            self.next_delivery(self.rng.choice(self.vans)).sale(now - HISTORY * self.rng.random())
            for _ in range(HISTORY_EVENTS)
        ]

    def drive(self, seconds: float) -> None:
        for van in self.vans:
            van.drive(self.city, seconds, self.rng)

    def advance(self, seconds: float) -> tuple[list[Delivery], list[Json]]:
        """Return the deliveries whose state changed, and the sales of those that arrived."""
        changed, sales = [], []
        for van in self.vans:
            if self.rng.random() > seconds / STATE_S:
                continue
            delivery = self.deliveries[van.name]
            if delivery.state == len(STATES) - 1:
                delivery = self.deliveries[van.name] = self.next_delivery(van)
            else:
                delivery.state += 1
            if delivery.state == len(STATES) - 1:
                sales.append(delivery.sale(datetime.now(UTC)))
            changed.append(delivery)
        return changed, sales

    def position(self, van: Driver, lifetime_s: float) -> Json:
        """Return a publication of where a van is."""
        return {
            "geo": {"center": list(on_earth(van.at)), "radius_m": 60},
            "data": {"van": van.name, "state": STATES[self.deliveries[van.name].state]},
            "expires_in_s": lifetime_s,
        }
