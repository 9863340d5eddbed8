"""Access rules that change now and then, and what they let nobody see."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tests.realtime.held import Frame

Document = dict[str, Any]
READ: tuple[dict[str, bool], ...] = ({"public": True}, {"public": True, "open": True})


class Rules:
    """The history of one collection's rule.

    Each write carries the number of the rule that was in force for certain when it began. Nobody
    may be shown it under an older one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: The newest rule that is in force for certain, and the newest that may be.
        self.certain = 0
        self._possible = 0

    def change(self, make: Callable[[dict[str, Any]], None]) -> None:
        """Bring the next rule into force by `make`, which returns once it is."""
        with self._lock:
            self._possible += 1
            number = self._possible
        make({"read": _rule(number)})
        with self._lock:
            self.certain = number

    def check(self, frame: Frame) -> None:
        """Fail if the frame shows what it must not. Rows of groups show no documents."""
        for shown in _documents(frame):
            with self._lock:
                numbers = range(shown["era"], self._possible + 1)
            assert any(_allows(_rule(number), shown) for number in numbers), (
                f"nobody may read {shown} in {numbers}"
            )


def _rule(number: int) -> dict[str, bool]:
    return READ[number % len(READ)]


def _allows(rule: dict[str, bool], shown: Document) -> bool:
    return all(shown.get(name) == value for name, value in rule.items())


def _documents(frame: Frame) -> list[Document]:
    """Return the documents that a frame shows, and those that they look up."""
    items = frame["items"] if frame["type"] == "result" else [frame]
    shown = [item["document"] for item in items if item.get("document") and item["version"]]
    return [found for one in shown for found in (one, *_looked_up(one))]


def _looked_up(shown: Document) -> list[Document]:
    found = [shown.get(name) for name in ("other", "namesake")]
    several = [one if isinstance(one, list) else [one] for one in found]
    return [one for group in several for one in group if one is not None]
