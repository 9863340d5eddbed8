"""Keeping nodes running, with a launcher that can fail in every way, on a virtual clock."""

from __future__ import annotations

import random

import pytest

from realtime.grid.keeper import ROOM_WITHIN_S, LauncherLost, NodeKeeper, cause_of
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


class StartedNode:
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
    """A launcher that behaves like Spark: it may fail, have no room, or only pretend to start a
    node.
    """

    def __init__(self, scenario: KeeperScenario) -> None:
        self._story = scenario
        self.tasks: list[StartedNode] = []
        self.opening_s = 0.0
        self.refusal: Exception | None = None
        self.capacity = 64
        self.rejects = False
        self.opened = 0

    def open(self, slots: int) -> int:
        self.opened += 1
        self._story.now_s += self.opening_s
        if self.refusal is not None:
            raise self.refusal
        return slots

    def room(self) -> int:
        return self.capacity

    def start(self, node: NodeSpec) -> StartedNode:
        self.tasks.append(StartedNode(f"{node.name}#{len(self.tasks)}"))
        if self.rejects:
            self.tasks[-1].reason = "its job was rejected"
        return self.tasks[-1]

    def lost(self) -> None:
        return None

    def close(self) -> None:
        """Do nothing."""


class KeeperScenario:
    """A keeper on a virtual clock. Nodes are healthy unless the test says otherwise."""

    def __init__(self) -> None:
        self.machines = Machines(self)
        self.keeper = NodeKeeper(self.machines, spare=True, clock=lambda: self.now_s)
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
    scenario = KeeperScenario()
    scenario.for_s(60)
    assert len(scenario.machines.tasks) == len(NODES)
    scenario.silent.add(NODES[0])
    scenario.for_s(SILENT_S + 1)
    assert [task.killed for task in scenario.machines.tasks] == [True, False, False, False]
    scenario.silent.clear()
    scenario.for_s(60)
    assert len(scenario.machines.tasks) == len(NODES) + 1


def test_an_application_that_runs_but_hangs_is_restarted() -> None:
    scenario = KeeperScenario()
    scenario.for_s(60)
    lost_s = scenario.now_s
    scenario.machines.tasks[0].reason = "its executor was lost"
    scenario.silent.add(NODES[0])
    with pytest.raises(LauncherLost, match="1:filter:0:0 cannot be placed"):
        scenario.for_s(600)
    assert scenario.now_s - lost_s < PLACEMENT_TRIES * (PLACED_WITHIN_S + 1)


def test_immediately_rejected_tasks_count_as_attempts() -> None:
    scenario = KeeperScenario()
    scenario.machines.rejects = True
    scenario.silent.update(NODES)
    with pytest.raises(LauncherLost, match="its job was rejected"):
        scenario.for_s(25)


def test_a_node_that_fails_after_placement_does_not_affect_others() -> None:
    scenario = KeeperScenario()
    scenario.for_s(10)
    for _ in range(20):
        scenario.machines.tasks[-1].reason = "it ran out of memory"
        scenario.for_s(12)
    assert not any(task.killed for task in scenario.machines.tasks)


def test_nodes_that_wait_for_machines_are_not_restarted() -> None:
    scenario = KeeperScenario()
    scenario.machines.capacity = 0
    scenario.silent.update(NODES)
    scenario.for_s(ROOM_WITHIN_S - 10)
    assert len(scenario.machines.tasks) == len(NODES)
    with pytest.raises(LauncherLost, match="no room for 3 nodes"):
        scenario.for_s(20)


def test_an_application_that_cannot_start_is_retried_with_backoff_and_a_reason() -> None:
    scenario = KeeperScenario()
    cause = "org.apache.spark.SparkException: the port is taken"
    scenario.machines.refusal = RuntimeError(f"An error occurred\n{cause}\n\tat a.b.C(D.java:1)")
    scenario.for_s(600)
    assert 10 <= scenario.machines.opened <= 30
    assert scenario.keeper.status() == {
        "state": "failing",
        "cause": cause,
        "failures": scenario.machines.opened,
    }
    scenario.machines.refusal = None
    scenario.for_s(LONGEST_BACKOFF_S + 1)
    assert scenario.keeper.status() == {"state": "open", "cause": None, "failures": 0}
    assert len(scenario.machines.tasks) == len(NODES)


def test_a_slow_failure_to_start_is_followed_by_a_pause_as_well() -> None:
    scenario = KeeperScenario()
    scenario.machines.refusal = RuntimeError("the API server does not answer")
    scenario.machines.opening_s = 2 * LONGEST_BACKOFF_S
    for number in range(1, 5):
        while scenario.machines.opened < number:
            scenario.round()
        scenario.for_s(FIRST_BACKOFF_S / 2 - ROUND_S)
        assert scenario.machines.opened == number


@pytest.mark.parametrize(
    ("reported", "cause"),
    [
        ("An error occurred\n: a.SparkException: no scheduler\n\tat b.C(D.java:1)\n", None),
        (
            (
                "An error occurred\n: a.SparkException: no scheduler\n\tat b.C(D.java:1)\n"
                "Caused by: a.ClientException: failed\n\t... 9 more\n"
                "Caused by: java.net.UnknownHostException: api.example\n\t... 12 more"
            ),
            "a.SparkException: no scheduler: java.net.UnknownHostException: api.example",
        ),
        (
            (
                "a.SparkException: no scheduler\n"
                "Caused by: a.PythonException: Traceback (most recent call last):\n  File …"
            ),
            None,
        ),
    ],
    ids=["no cause", "two causes", "the cause is a Python traceback"],
)
def test_a_stack_trace_is_reduced_to_what_failed_and_its_last_cause(
    reported: str, cause: str | None
) -> None:
    assert cause_of(RuntimeError(reported)) == (cause or "a.SparkException: no scheduler")


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
