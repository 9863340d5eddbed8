"""TtlCache: values live for a second, and concurrent callers share one read."""

from __future__ import annotations

import asyncio

import pytest

from foundation.ttl_cache import TTL_S, TtlCache
from tests.waiting import until


class Source:
    """A changing value whose reads complete when the test allows it."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.value = "first"
        self.readings: list[tuple[str, asyncio.Future[None]]] = []
        self.cache = TtlCache(self._read, capacity=2, monotonic_s=lambda: self.now_s)

    async def _read(self, key: str, known: str | None) -> str:
        result = f"{key}: {self.value}, after {known}" if known else f"{key}: {self.value}"
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.readings.append((key, done))
        await done
        return result

    def ask(self, key: str, *, fresh: bool = False) -> asyncio.Task[str]:
        return asyncio.create_task(self.cache.get(key, fresh=fresh))

    async def until_started(self, number: int) -> None:
        """Wait until a read has started."""
        await until(lambda: len(self.readings) > number, "a reading")

    async def end(self, number: int, failure: Exception | None = None) -> None:
        """Let a read complete, once it has started."""
        await self.until_started(number)
        done = self.readings[number][1]
        if failure is None:
            done.set_result(None)
        else:
            done.set_exception(failure)


async def test_concurrent_callers_share_one_read() -> None:
    source = Source()
    reads = [source.ask("a") for _ in range(100)]
    await source.end(0)
    assert await asyncio.gather(*reads) == ["a: first"] * 100
    assert len(source.readings) == 1


async def test_a_value_is_cached_for_its_lifetime_and_no_longer() -> None:
    source = Source()
    first = source.ask("a")
    await source.end(0)
    await first
    source.value, source.now_s = "second", source.now_s + TTL_S - 0.01
    assert await source.ask("a") == "a: first"
    source.now_s += 0.02
    again = source.ask("a")
    await source.end(1)
    assert await again == "a: second, after a: first"


async def test_the_age_of_a_value_counts_from_the_start_of_its_read() -> None:
    source = Source()
    slow = source.ask("a")
    await source.until_started(0)
    source.now_s += TTL_S
    await source.end(0)
    assert await slow == "a: first"
    source.value = "second"
    again = source.ask("a")
    await source.end(1)
    assert await again == "a: second, after a: first"


async def test_a_cancelled_caller_does_not_affect_the_others() -> None:
    source = Source()
    first, second = source.ask("a"), source.ask("a")
    await source.until_started(0)
    first.cancel()
    await source.end(0)
    assert await second == "a: first"


async def test_a_failure_is_raised_for_all_callers_and_not_cached() -> None:
    source = Source()
    reads = [source.ask("a") for _ in range(3)]
    await source.end(0, LookupError("away"))
    for read in reads:
        with pytest.raises(LookupError):
            await read
    again = source.ask("a")
    await source.end(1)
    assert await again == "a: first"


async def test_a_caller_can_bypass_the_cache() -> None:
    """A read in flight may have started before the change that the caller knows of."""
    source = Source()
    early = source.ask("a")
    await source.until_started(0)
    source.value = "second"
    certain = source.ask("a", fresh=True)
    await source.end(1)
    assert await certain == "a: second"
    await source.end(0)
    await early


async def test_a_slow_read_does_not_replace_a_later_one() -> None:
    source = Source()
    slow = source.ask("a")
    await source.until_started(0)
    source.value, source.now_s = "second", source.now_s + 0.1
    certain = source.ask("a", fresh=True)
    await source.end(1)
    await certain
    await source.end(0)
    assert await slow == "a: first"
    assert await source.ask("a") == "a: second"


async def test_the_least_recently_read_value_is_evicted_first() -> None:
    source = Source()
    for number, key in enumerate("abc"):
        reads = source.ask(key)
        await source.end(number)
        await reads
    assert await source.ask("c") == "c: first"
    again = source.ask("a")
    await source.end(3)
    assert await again == "a: first"
