"""Pairs of rows whose sum is zero in every state, written and read at the same time."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import requests

from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.analytics.dataset_client import DatasetClient

#: One pair is in one table, the other in two.
FRESHNESSES: tuple[object, ...] = (0, 0, 1, 3, "any")
PAUSE_S = 0.01


def write(shop: DatasetClient, numbers: Iterable[int], rng: random.Random) -> None:
    """Upload pairs, sometimes only the changed columns, sometimes whole rows. Each upload is one
    state.
    """
    for number in numbers:
        op = rng.choice(["insert", "update"])
        shop.upload(
            {"stock": {"place": "p", "item": 1, "pieces": number}, "op": op},
            {"orders": {"id": 1, "count": -number}, "op": op},
            {"stock": {"place": "p", "item": 2, "pieces": -number}, "op": op},
            id=f"pair-{number}",
        )


class Readers:
    """Threads that read at any freshness, and record violations."""

    def __init__(self, shop: DatasetClient, count: int) -> None:
        self._shop = shop
        self._over = threading.Event()
        self._wrong: list[str] = []
        self._threads = [
            threading.Thread(target=self._read, args=(random.Random(n),)) for n in range(count)
        ]
        self.answers = 0

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            wait_until(lambda: self.answers > 0 or bool(self._wrong), what="an answer")
        self._over.set()
        for thread in self._threads:
            thread.join()
        assert self._wrong == []

    def _read(self, rng: random.Random) -> None:
        state = 0
        # Without pauses, readers would take the pipeline's processor time.
        while not self._over.wait(PAUSE_S) and not self._wrong:
            try:
                state = self._look(state, rng.choice(FRESHNESSES))
            except (AssertionError, requests.RequestException) as failed:
                self._wrong.append(str(failed))

    def _look(self, since: int, freshness: object) -> int:
        """Read the pairs at one state, which is not before the last one."""
        answer = self._shop.query("stock", freshness=freshness, since=since, columns=["pieces"])
        state: int = answer["state"]
        assert state >= since, f"the state went back from {since} to {state}"
        pieces = [row["pieces"] for row in answer["rows"]]
        assert sum(pieces) == 0, (state, pieces)
        orders = self._shop.query("orders", state=state, columns=["count"])
        counts: list[Any] = [row["count"] for row in orders["rows"]]
        # The number of an upload is the state that it makes.
        expected = [-state] if state else []
        assert counts == expected, (state, counts)
        assert sorted(pieces) == ([-state, state] if state else []), (state, pieces)
        self.answers += 1
        return state
