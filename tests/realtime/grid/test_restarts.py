"""When a node that keeps ending is started again. Times are the test's own."""

from __future__ import annotations

from realtime.grid.restarts import FIRST_DELAY_S, GOOD_LIFE_S, LONGEST_DELAY_S, RestartDelays


def delay_after(restarts: RestartDelays, now_s: float) -> float:
    """Return how long after an end it may be started, to a tenth of a second."""
    restarts.ended(now_s)
    tenths = 0
    while not restarts.due(now_s + tenths / 10 + 0.001):
        tenths += 1
    return tenths / 10


def test_a_node_that_has_never_run_may_start_immediately() -> None:
    assert RestartDelays().due(0.0)


def test_each_short_run_doubles_the_delay_up_to_a_limit() -> None:
    restarts, now_s, delays = RestartDelays(), 100.0, []
    for _ in range(8):
        restarts.started(now_s)
        delays.append(delay_after(restarts, now_s + 1))
        now_s += 60
    assert delays == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, LONGEST_DELAY_S, LONGEST_DELAY_S]


def test_a_long_run_resets_the_delay() -> None:
    restarts = RestartDelays()
    for start_s in (100.0, 200.0, 300.0):
        restarts.started(start_s)
        restarts.ended(start_s + 1)
    restarts.started(400.0)
    assert delay_after(restarts, 400.0 + GOOD_LIFE_S) == FIRST_DELAY_S
