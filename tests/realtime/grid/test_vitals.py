"""Whether a node works, according to its heartbeats, on a virtual clock."""

from __future__ import annotations

from realtime.grid.vitals import (
    MAX_START_FACTOR,
    PLACED_WITHIN_S,
    SILENT_S,
    STUCK_S,
    Heartbeat,
    NodeHealth,
    Vitals,
    start_factor,
)

ROUND_S = 0.25


class WatchedNode:
    """A node that is checked every quarter of a second."""

    def __init__(self) -> None:
        self.vitals = Vitals()
        self.now_s = 100.0
        self.verdict = self.vitals.observe(self.now_s, None, room=True)

    def check(
        self, sign: Heartbeat | None, *, room: bool = True, after_s: float = ROUND_S
    ) -> NodeHealth:
        self.now_s += after_s
        self.verdict = self.vitals.observe(self.now_s, sign, room=room)
        return self.verdict

    def seconds_until(
        self, verdict: NodeHealth, sign: Heartbeat | None, *, beating: bool = False
    ) -> float:
        """Look at the same sign, or the next beats, until the verdict falls."""
        began_s, beats = self.now_s, 0 if sign is None else sign.beats
        while self.verdict is not verdict:
            assert self.now_s - began_s < 1_000
            beats += 1
            self.check(Heartbeat(beats, sign.steps) if beating and sign is not None else sign)
        return self.now_s - began_s


def test_a_node_without_any_heartbeat_could_not_be_placed() -> None:
    node = WatchedNode()
    assert node.verdict is NodeHealth.STARTING
    assert node.seconds_until(NodeHealth.UNPLACED, None) == PLACED_WITHIN_S
    assert not node.vitals.placed


def test_no_heartbeat_is_expected_of_a_node_without_a_machine() -> None:
    node = WatchedNode()
    for _ in range(1_000):
        assert node.check(None, room=False) is NodeHealth.STARTING
    assert node.seconds_until(NodeHealth.UNPLACED, None) == PLACED_WITHIN_S


def test_on_a_busy_machine_a_start_may_take_longer() -> None:
    assert start_factor(load=0.5, cores=2) == 1.0
    assert start_factor(load=7.0, cores=2) == 3.5
    assert start_factor(load=100.0, cores=2) == MAX_START_FACTOR
    vitals, checks = Vitals(), 0
    while (
        vitals.observe(checks * ROUND_S, None, room=True, start_factor=3.5) is NodeHealth.STARTING
    ):
        checks += 1
    assert checks * ROUND_S == 3.5 * PLACED_WITHIN_S


def test_a_stopped_process_sends_no_heartbeats() -> None:
    node = WatchedNode()
    assert node.check(Heartbeat(1, 0)) is NodeHealth.ALIVE
    assert node.check(Heartbeat(2, 9)) is NodeHealth.ALIVE
    assert node.seconds_until(NodeHealth.SILENT, Heartbeat(2, 9)) == SILENT_S
    assert node.vitals.placed


def test_a_busy_loop_is_healthy_and_one_without_progress_is_stuck() -> None:
    node = WatchedNode()
    node.check(Heartbeat(1, 7))
    assert node.seconds_until(NodeHealth.STUCK, Heartbeat(1, 7), beating=True) == STUCK_S


def test_a_step_is_enough() -> None:
    node = WatchedNode()
    for number in range(10_000):
        assert node.check(Heartbeat(number + 1, number // 400)) is NodeHealth.ALIVE


def test_lost_heartbeats_count_as_missing() -> None:
    node = WatchedNode()
    node.check(Heartbeat(5, 5))
    assert node.seconds_until(NodeHealth.SILENT, None) == SILENT_S


def test_a_suspended_supervisor_does_not_count_silence_of_nodes() -> None:
    node = WatchedNode()
    node.check(Heartbeat(1, 1))
    assert node.check(Heartbeat(1, 1), after_s=600.0) is NodeHealth.ALIVE
    assert node.check(Heartbeat(2, 2)) is NodeHealth.ALIVE


def test_heartbeats_are_read_as_nodes_write_them() -> None:
    assert Heartbeat.parse(b"12 3456") == Heartbeat(12, 3456)
    for text in (b"", b"12", b"x 1", b"-1 2", b"1 2 3"):
        assert Heartbeat.parse(text) is None
