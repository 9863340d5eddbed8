"""Customers and a warehouse for the shop: orders arrive, are packed, and are shipped."""

from __future__ import annotations

import random
import secrets
import threading
from collections import deque
from datetime import UTC, datetime
from typing import Self

from examples.browser.api import Api, CallRejected
from examples.browser.apps import date

EVERY_S = 0.4
#: The warehouse has so many orders before the oldest one advances.
SHELF = 12
PRODUCTS = {"Teapot": 34, "Reading lamp": 58, "Wool blanket": 89, "Desk": 420, "Mug": 12}
CITIES = ("Lisbon", "Hamburg", "Turin", "Ghent", "Kraków", "Malmö", "Graz", "Lyon")


class Trade:
    """Writes through the ordinary API, in a thread, until it is stopped."""

    def __init__(self, api: Api, collection: str) -> None:
        self._api, self._path = api, f"/v1/collections/{collection}/documents"
        self._rng = random.Random()  # noqa: S311 -- customers, not secrets
        self._waiting: deque[str] = deque()
        self._packed: deque[str] = deque()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="customers", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(EVERY_S * self._rng.uniform(0.3, 1.7)):
            try:
                self._order()
                if len(self._waiting) > SHELF:
                    self._move(self._waiting, "packed", self._packed)
                if len(self._packed) > SHELF:
                    self._move(self._packed, "shipped", None)
            except CallRejected:
                continue  # Rillbase is unavailable for a moment, or restarts: customers retry.

    def _order(self) -> None:
        product, price = self._rng.choice(list(PRODUCTS.items()))
        order = {
            "_id": f"order-{secrets.token_hex(6)}",
            "product": product,
            "city": self._rng.choice(CITIES),
            "total": price * self._rng.randint(1, 4),
            "state": "new",
            "at": date(datetime.now(UTC)),
        }
        self._api.call("POST", self._path, order)
        self._waiting.append(str(order["_id"]))

    def _move(self, shelf: deque[str], state: str, onto: deque[str] | None) -> None:
        order = shelf.popleft()
        self._api.call("PATCH", f"{self._path}/{order}", {"$set": {"state": state}})
        if onto is not None:
            onto.append(order)
