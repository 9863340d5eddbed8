"""Values that exist once per event loop, such as connections, which belong to their loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary, ref

T = TypeVar("T")


class PerLoop(Generic[T]):
    """One value per event loop, created when first needed."""

    def __init__(self, create: Callable[[], T]) -> None:
        self._create = create
        self._values: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()
        #: The value that was returned last: a process that serves has one loop.
        self._last: tuple[ref[asyncio.AbstractEventLoop], T] | None = None

    def get(self) -> T:
        """Return the running loop's value."""
        loop = asyncio.get_running_loop()
        last = self._last
        if last is not None and last[0]() is loop:
            return last[1]
        value = self._values.get(loop)
        if value is None:
            value = self._values[loop] = self._create()
        self._last = (ref(loop), value)
        return value

    def existing(self) -> T | None:
        """Return the running loop's value if it has been created."""
        return self._values.get(asyncio.get_running_loop())

    def pop(self) -> T | None:
        """Remove the running loop's value, for the caller to close."""
        self._last = None
        return self._values.pop(asyncio.get_running_loop(), None)
