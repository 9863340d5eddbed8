"""Sources with few changes do not wait for one with very many, on a virtual clock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from uuid import UUID, uuid4

from sources.following.fair_share import CONTENDED_ROWS, HEAVY_SHARE, FairShare

TURN_S = 0.01
SECONDS = 20.0


class VirtualLoop:
    """A loop that is busy for as long as turns take, and otherwise waits for the next timer."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.share = FairShare(self._clock, self._clock)
        #: What each source was charged with while the run lasted.
        self.spent_s: dict[UUID, float] = {}

    def _clock(self) -> float:
        return self.now_s

    def turn(self, source: UUID, spent_s: float) -> None:
        """Let a source work, which blocks all others."""
        _finished(self.share.turn(source))
        _finished(self.share.metered(source, self._work(spent_s)))
        self.spent_s[source] = self.spent_s.get(source, 0.0) + spent_s

    async def _work(self, spent_s: float) -> None:
        self.now_s += spent_s

    def run(self, heavy: list[UUID], light: list[UUID]) -> None:
        """Let heavy sources work whenever they may, and light ones twenty times a second."""
        due_s = dict.fromkeys(light, 0.0)
        resumes_s = dict.fromkeys(heavy, 0.0)
        while self.now_s < SECONDS:
            before_s = self.now_s
            for source in light:
                if due_s[source] <= self.now_s:
                    assert self.share.pause_s(source) == 0, "a light source never waits"
                    due_s[source] = self.now_s + 0.05
                    self.turn(source, 0.001)
            for source in heavy:
                if resumes_s[source] <= self.now_s:
                    resumes_s[source] = self.now_s + self.share.pause_s(source)
                if resumes_s[source] <= self.now_s:
                    self.turn(source, TURN_S)
            if self.now_s == before_s:
                self.now_s = min([*due_s.values(), *resumes_s.values()])


def _finished(work: Awaitable[object]) -> None:
    """Run an awaitable that must not wait."""
    steps = work.__await__()
    try:
        next(steps)
    except StopIteration:
        return
    raise AssertionError("it waits")


def test_a_flooded_source_gets_its_share_while_another_has_little_to_do() -> None:
    loop, flooded, calm = VirtualLoop(), uuid4(), uuid4()
    loop.run([flooded], [calm])
    # What it could use before it counted as heavy, and one turn more.
    assert loop.spent_s[flooded] <= HEAVY_SHARE * SECONDS + 0.5
    assert loop.spent_s[flooded] >= HEAVY_SHARE * SECONDS / 2


def test_many_flooded_sources_share_what_one_would_get_in_equal_parts() -> None:
    loop, flooded = VirtualLoop(), [uuid4() for _ in range(8)]
    loop.run(flooded, [uuid4(), uuid4()])
    parts = [loop.spent_s[source] for source in flooded]
    assert sum(parts) <= HEAVY_SHARE * SECONDS + 1
    assert max(parts) <= 1.5 * min(parts)


def test_flooded_sources_without_others_use_all_of_the_loop_in_equal_parts() -> None:
    loop, flooded = VirtualLoop(), [uuid4() for _ in range(3)]
    loop.run(flooded, [])
    parts = [loop.spent_s[source] for source in flooded]
    assert sum(parts) >= 0.95 * SECONDS
    assert max(parts) - min(parts) <= 0.1 * SECONDS


def test_a_flooded_source_takes_smaller_turns_while_others_have_work() -> None:
    loop, flooded, calm = VirtualLoop(), uuid4(), uuid4()
    loop.turn(flooded, 1.0)
    assert loop.share.rows(flooded, 500) == 500
    loop.turn(calm, 0.001)
    assert loop.share.rows(flooded, 500) == CONTENDED_ROWS
    assert loop.share.rows(flooded, 10) == 10
    loop.now_s += 1.0
    assert loop.share.rows(flooded, 500) == 500


async def test_work_on_a_thread_is_charged_to_its_source() -> None:
    from sources.following import fair_share
    from sources.following.offload import on_thread

    busy, calm = uuid4(), uuid4()
    await on_thread(busy, lambda: sum(range(2_000_000)))
    await fair_share.sources.turn(calm)
    assert fair_share.sources.pause_s(busy) > 0
    assert fair_share.sources.pause_s(calm) == 0


async def test_a_source_whose_work_is_cancelled_while_it_pauses_stops() -> None:
    share, flooded, calm = FairShare(), uuid4(), uuid4()
    share.charge(flooded, 1.0)
    await share.turn(calm)
    pausing = asyncio.ensure_future(share.metered(flooded, share.turn(flooded)))
    await asyncio.sleep(0)
    pausing.cancel()
    await asyncio.gather(pausing, return_exceptions=True)
    assert pausing.cancelled()
