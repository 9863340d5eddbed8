"""A bounded cache of authentication lookups, valid for at most one second.

Revocation must take effect everywhere within a second whatever else fails, so use never refreshes
an entry: after `TTL_S` the value is read from PostgreSQL again.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, TypeVar

TTL_S = 1.0
MAX_ENTRIES = 20_000

V = TypeVar("V")

_cached_only: ContextVar[bool] = ContextVar("credentials_cached_only", default=False)
_at_most_s: ContextVar[float] = ContextVar("credentials_at_most_s", default=TTL_S)


class NotCached(Exception):
    """A value would have to be loaded, and the caller must not wait for it here."""


@contextmanager
def cached_only() -> Iterator[None]:
    """Raise `NotCached` instead of loading. For event loops, which then retry in a thread."""
    token = _cached_only.set(True)
    try:
        yield
    finally:
        _cached_only.reset(token)


@contextmanager
def at_most(age_s: float) -> Iterator[None]:
    """Ignore values older than this. For callers that poll."""
    token = _at_most_s.set(age_s)
    try:
        yield
    finally:
        _at_most_s.reset(token)


def check_may_load() -> None:
    """Raise `NotCached` where loading is not allowed."""
    if _cached_only.get():
        raise NotCached


class ShortCache(Generic[V]):
    """Values by key for up to `ttl_s`; the oldest entries are evicted first. Thread-safe."""

    def __init__(
        self,
        ttl_s: float = TTL_S,
        max_entries: int = MAX_ENTRIES,
        clock: Callable[[], float] = time.monotonic,
        *,
        is_polled: bool = True,
    ) -> None:
        self._ttl_s = ttl_s
        #: Whether the limit of `at_most` applies, which is a second by default.
        self._is_polled = is_polled
        self._max_entries = max_entries
        self._clock = clock
        self._entries: OrderedDict[Hashable, tuple[float, V]] = OrderedDict()
        self._lock = threading.Lock()
        #: A load that began before the last eviction may have read an evicted value.
        self._evicted_at = float("-inf")

    def get(self, key: Hashable) -> V | None:
        """Return the value if it is younger than `ttl_s` and than the limit of `at_most`."""
        entry = self._entries.get(key)
        limit_s = min(_at_most_s.get(), self._ttl_s) if self._is_polled else self._ttl_s
        if entry is None or entry[0] - self._ttl_s + limit_s <= self._clock():
            return None
        return entry[1]

    def get_or_load(self, key: Hashable, load: Callable[[], V]) -> V:
        """Return the cached value, or load it; its age counts from the start of the load."""
        cached = self.get(key)
        if cached is not None:
            return cached
        check_may_load()
        begin = self.now()
        value = load()
        self.put(key, value, begin)
        return value

    def now(self) -> float:
        """Return the start time of a load, from which the value's age counts."""
        return self._clock()

    def put(self, key: Hashable, value: V, begin: float) -> None:
        """Store a value whose load began at `begin`."""
        with self._lock:
            if begin < self._evicted_at:
                return
            self._entries[key] = (begin + self._ttl_s, value)
            self._entries.move_to_end(key)
            while len(self._entries) > self._max_entries:
                self._entries.popitem(last=False)

    def forget(self, key: Hashable) -> None:
        """Evict one entry of this process at once."""
        with self._lock:
            self._evicted_at = self._clock()
            self._entries.pop(key, None)

    def evict(self, is_stale: Callable[[Hashable, V], bool]) -> None:
        """Evict the entries of this process for which `is_stale` holds."""
        with self._lock:
            self._evicted_at = self._clock()
            for key in [key for key, (_, value) in self._entries.items() if is_stale(key, value)]:
                del self._entries[key]
