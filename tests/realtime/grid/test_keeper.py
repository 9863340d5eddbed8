"""Keeping nodes running, with a launcher that can fail in every way. Times are the test's own."""

from __future__ import annotations

import random

import pytest

from realtime.grid.keeper import ROOM_WITHIN_S, LauncherLost, NodeKeeper
from realtime.grid.layout import GridEpoch, NodeSpec
from realtime.grid.restarts import (
    FIRST_BACKOFF_S,
    LONGEST_BACKOFF_S,
    PLACEMENT_TRIES,
    RetryTimer,
)
from realtime.grid.vitals import PLACED_WITHIN_S, SILENT_S, Heartbeat

NODES = GridEpoch(1, 1, 2).nodes()
ROUND_S = 0.25


class Started:
    """A node that was started, and may end."""

    def __init__(self, holder: str) -> None:
        self.holder = holder
        self.reason: str | None = None
        self.killed = False

    def ended(self) -> str | None:
        return self.reason

    def stop(self) -> None:
        self.reason = "it was stopped"

    def kill(self) -> None:
        self.killed = True


class Machines:
    """A launcher as Spark may be: it cannot start, has no room, or starts nothing in truth."""

    def __init__(self) -> None:
        self.tasks: list[Started] = []
        self.refusal: Exception | None = None
        self.capacity = 64
        self.rejects = False
        self.opened = 0

    def open(self, slots: int) -> int:
        self.opened += 1
        if self.refusal is not None:
            raise self.refusal
        return slots

    def room(self) -> int:
        return self.capacity

    def start(self, node: NodeSpec) -> Started:
        self.tasks.append(Started(f"{node.name}#{len(self.tasks)}"))
        if self.rejects:
            self.tasks[-1].reason = "its job was rejected"
        return self.tasks[-1]

    def lost(self) -> None:
        return None

    def close(self) -> None:
        """Have nothing to end."""


class Story:
    """A keeper whose clock the test turns. Nodes are well unless the test says otherwise."""

    def __init__(self) -> None:
        self.machines = Machines()
        self.keeper = NodeKeeper(self.machines, spare=True)
        self.now_s = 1_000.0
        self.beats = 0
        self.silent: set[NodeSpec] = set()

    def round(self) -> None:
        self.now_s += ROUND_S
        self.beats += 1
        self.keeper.reconcile(self.now_s, NODES)
        started = self.keeper.holders(NODES)
        sign = Heartbeat(self.beats, self.beats)
        signs = {node: None if node in self.silent else sign for node in started}
        self.keeper.observe(self.now_s, signs)

    def for_s(self, seconds: float) -> None:
        for _ in range(round(seconds / ROUND_S)):
            self.round()


def test_a_silent_node_is_killed_and_restarted() -> None:
    story = Story()
    story.for_s(60)
    assert len(story.machines.tasks) == len(NODES)
    story.silent.add(NODES[0])
    story.for_s(SILENT_S + 1)
    assert [task.killed for task in story.machines.tasks] == [True, False, False, False]
    story.silent.clear()
    story.for_s(60)
    assert len(story.machines.tasks) == len(NODES) + 1


def test_an_application_that_only_looks_alive_is_restarted() -> None:
    story = Story()
    story.for_s(60)
    lost_s = story.now_s
    story.machines.tasks[0].reason = "its executor was lost"
    story.silent.add(NODES[0])
    with pytest.raises(LauncherLost, match="1:filter:0:0 cannot be placed"):
        story.for_s(600)
    assert story.now_s - lost_s < PLACEMENT_TRIES * (PLACED_WITHIN_S + 1)


def test_immediately_rejected_tasks_count_as_attempts() -> None:
    story = Story()
    story.machines.rejects = True
    story.silent.update(NODES)
    with pytest.raises(LauncherLost, match="its job was rejected"):
        story.for_s(25)


def test_a_node_that_fails_after_placement_does_not_affect_others() -> None:
    story = Story()
    story.for_s(10)
    for _ in range(20):
        story.machines.tasks[-1].reason = "it ran out of memory"
        story.for_s(12)
    assert not any(task.killed for task in story.machines.tasks)


def test_nodes_that_wait_for_machines_are_not_restarted() -> None:
    story = Story()
    story.machines.capacity = 0
    story.silent.update(NODES)
    story.for_s(ROOM_WITHIN_S - 10)
    assert len(story.machines.tasks) == len(NODES)
    with pytest.raises(LauncherLost, match="no room for 3 nodes"):
        story.for_s(20)


def test_an_application_that_cannot_start_is_retried_with_backoff_and_a_reason() -> None:
    story = Story()
    cause = "org.apache.spark.SparkException: the port is taken"
    story.machines.refusal = RuntimeError(f"An error occurred\n{cause}\n\tat a.b.C(D.java:1)")
    story.for_s(600)
    assert 10 <= story.machines.opened <= 30
    assert story.keeper.status() == {
        "state": "failing",
        "cause": cause,
        "failures": story.machines.opened,
    }
    story.machines.refusal = None
    story.for_s(LONGEST_BACKOFF_S + 1)
    assert story.keeper.status() == {"state": "open", "cause": None, "failures": 0}
    assert len(story.machines.tasks) == len(NODES)


def test_pauses_double_up_to_a_limit_with_jitter() -> None:
    backoff = RetryTimer(random.Random(1))
    now_s, pauses = 0.0, list[float]()
    for _ in range(12):
        pauses.append(backoff.failed(now_s))
        assert not backoff.due(now_s + pauses[-1] - 0.001)
        now_s += pauses[-1]
        assert backoff.due(now_s)
    for number, pause in enumerate(pauses):
        longest_s = min(LONGEST_BACKOFF_S, FIRST_BACKOFF_S * 2**number)
        assert longest_s / 2 <= pause <= longest_s
    assert len(set(pauses)) == len(pauses)
    backoff.succeeded()
    assert backoff.failed(now_s) <= FIRST_BACKOFF_S
