"""Values that exist once per event loop, such as connections, which belong to their loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class PerLoop(Generic[T]):
    """One value per event loop, created when first needed."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._values: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()

    def get(self) -> T:
        """Return the running loop's value."""
        loop = asyncio.get_running_loop()
        value = self._values.get(loop)
        if value is None:
            value = self._values[loop] = self._make()
        return value

    def existing(self) -> T | None:
        """Return the running loop's value if it has been created."""
        return self._values.get(asyncio.get_running_loop())

    def pop(self) -> T | None:
        """Remove the running loop's value, for the caller to close."""
        return self._values.pop(asyncio.get_running_loop(), None)
