"""The caller's listeners. One that fails is logged, and stays registered."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

log = logging.getLogger("rillbase")


def notify(listener: Callable[[T], object], what: T) -> None:
    """Call a listener. An exception in it must not end the notifier."""
    try:
        listener(what)
    except Exception:
        log.exception("A listener failed")


class Listeners(Generic[T]):
    """A set of listeners."""

    def __init__(self) -> None:
        self._all: list[Callable[[T], object]] = []

    def add(self, listener: Callable[[T], object]) -> Callable[[], None]:
        """Add a listener; return a function that removes it."""
        self._all.append(listener)

        def stop() -> None:
            if listener in self._all:
                self._all.remove(listener)

        return stop

    def notify(self, what: T) -> None:
        for listener in list(self._all):
            notify(listener, what)
