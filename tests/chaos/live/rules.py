"""Access rules that change during a run, and a check that no frame violates them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tests.realtime.held_answer import Frame

Document = dict[str, Any]
READ: tuple[dict[str, bool], ...] = ({"public": True}, {"public": True, "open": True})


class Rules:
    """The history of one collection's rule.

    Each write carries the number of the newest rule that was certainly in force when the write
    began. No frame may show the document under an older rule.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: The newest rule that is certainly in force, and the newest that may be.
        self.certain = 0
        self._possible = 0

    def change(self, make: Callable[[dict[str, Any]], None]) -> None:
        """Put the next rule into force with `make`, which returns once it applies."""
        with self._lock:
            self._possible += 1
            number = self._possible
        make({"read": _rule(number)})
        with self._lock:
            self.certain = number

    def check(self, frame: Frame) -> None:
        """Fail if the frame shows a hidden document. Rows of groups show no documents."""
        for shown in _documents(frame):
            with self._lock:
                numbers = range(shown["era"], self._possible + 1)
            assert any(_allows(_rule(number), shown) for number in numbers), (
                f"no rule in {numbers} allows reading {shown}"
            )


def _rule(number: int) -> dict[str, bool]:
    return READ[number % len(READ)]


def _allows(rule: dict[str, bool], shown: Document) -> bool:
    return all(shown.get(name) == value for name, value in rule.items())


def _documents(frame: Frame) -> list[Document]:
    """Return the documents that a frame shows, including looked-up documents."""
    items = frame["items"] if frame["type"] == "result" else [frame]
    shown = [item["document"] for item in items if item.get("document") and item["version"]]
    return [document for one in shown for document in (one, *_looked_up(one))]


def _looked_up(shown: Document) -> list[Document]:
    values = [shown.get(name) for name in ("other", "namesake")]
    several = [one if isinstance(one, list) else [one] for one in values]
    return [one for group in several for one in group if one is not None]
