"""Cached credentials are never older than a second."""

from __future__ import annotations

from tenants.credentials.cache import ShortCache, at_most


class Clock:
    """A clock that the test sets."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_value_is_loaded_once_within_its_lifetime() -> None:
    clock, loads = Clock(), iter([1, 2])
    cache: ShortCache[int] = ShortCache(ttl_s=1.0, clock=clock)
    assert cache.get_or_load("k", lambda: next(loads)) == 1
    clock.now += 0.9
    assert cache.get_or_load("k", lambda: next(loads)) == 1


def test_reading_a_value_does_not_prolong_it() -> None:
    clock, loads = Clock(), iter([1, 2])
    cache: ShortCache[int] = ShortCache(ttl_s=1.0, clock=clock)
    for _ in range(3):
        cache.get_or_load("k", lambda: next(loads))
        clock.now += 0.33
    clock.now += 0.02
    assert cache.get_or_load("k", lambda: next(loads)) == 2


def test_the_lifetime_starts_before_the_load() -> None:
    clock = Clock()
    cache: ShortCache[int] = ShortCache(ttl_s=1.0, clock=clock)

    def slow() -> int:
        clock.now += 0.8
        return 1

    cache.get_or_load("k", slow)
    clock.now += 0.3
    assert cache.get("k") is None


def test_the_oldest_entries_are_evicted() -> None:
    cache: ShortCache[int] = ShortCache(ttl_s=1.0, max_entries=2)
    for number in range(3):
        cache.get_or_load(number, lambda number=number: number)  # type: ignore[misc]
    assert cache.get(0) is None
    assert cache.get(2) == 2


def test_an_evicted_entry_is_loaded_again() -> None:
    cache: ShortCache[int] = ShortCache(ttl_s=1.0)
    cache.get_or_load("k", lambda: 1)
    cache.forget("k")
    assert cache.get_or_load("k", lambda: 2) == 2


def test_a_cache_of_foreign_values_may_be_older_than_a_second() -> None:
    clock = Clock()
    polled: ShortCache[int] = ShortCache(ttl_s=3600.0, clock=clock)
    cache: ShortCache[int] = ShortCache(ttl_s=3600.0, clock=clock, is_polled=False)
    for each in (polled, cache):
        each.get_or_load("k", lambda: 1)
    clock.now += 1.1
    assert polled.get("k") is None
    with at_most(0.3):
        assert cache.get("k") == 1
    clock.now += 3600
    assert cache.get("k") is None
