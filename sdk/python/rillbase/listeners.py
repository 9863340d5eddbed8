"""Functions of the caller's that are told of something. One that fails is logged, and stays."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

log = logging.getLogger("rillbase")


def tell(listener: Callable[[T], object], what: T) -> None:
    """Call a listener. What it raises is its own affair and must not end what tells it."""
    try:
        listener(what)
    except Exception:
        log.exception("A listener failed")


class Listeners(Generic[T]):
    """Those who want to be told."""

    def __init__(self) -> None:
        self._all: list[Callable[[T], object]] = []

    def add(self, listener: Callable[[T], object]) -> Callable[[], None]:
        """Tell a listener from now on; return how to stop."""
        self._all.append(listener)

        def stop() -> None:
            if listener in self._all:
                self._all.remove(listener)

        return stop

    def tell(self, what: T) -> None:
        for listener in list(self._all):
            tell(listener, what)
