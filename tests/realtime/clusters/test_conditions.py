"""The conditions of a cluster, and their reasons."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from realtime.clusters.kubernetes import conditions
from realtime.clusters.kubernetes.conditions import ClusterCondition, PodCounts
from realtime.models import Cluster

NOW = datetime.datetime(2026, 11, 21, 12, tzinfo=datetime.UTC)
LATER = NOW + datetime.timedelta(minutes=1)
RUNS = PodCounts(drivers_ready=1, executors_running=2, trouble=None)


def pod(part: str, **status: Any) -> dict[str, Any]:
    return {"metadata": {"labels": {"app.kubernetes.io/component": part}}, "status": status}


def test_a_condition_keeps_the_time_of_its_last_change() -> None:
    first = conditions.merged([], [ClusterCondition("Applied", True, "Applied", "3 objects")], NOW)
    again = conditions.merged(first, [ClusterCondition("Applied", True, "AsDescribed", "")], LATER)
    assert again[0]["last_transition_at"] == "2026-11-21T12:00:00.000Z"  # type: ignore[index,call-overload]
    assert again[0]["reason"] == "AsDescribed"  # type: ignore[index,call-overload]
    other = conditions.merged(
        again, [ClusterCondition("Applied", None, "ApiServerUnavailable", "")], LATER
    )
    assert other[0]["last_transition_at"] == "2026-11-21T12:01:00.000Z"  # type: ignore[index,call-overload]
    assert other[0]["status"] == "Unknown"  # type: ignore[index,call-overload]


def test_conditions_that_were_not_observed_stay_unchanged() -> None:
    first = conditions.merged([], [ClusterCondition("Running", True, "DriverReady", "")], NOW)
    both = conditions.merged(
        first, [ClusterCondition("Applied", None, "ApiServerUnavailable", "")], LATER
    )
    assert [one["type"] for one in both if isinstance(one, dict)] == ["Running", "Applied"]


def test_a_pod_without_an_image_is_reported() -> None:
    waiting = {"reason": "ImagePullBackOff", "message": "no such image"}
    counts = conditions.pods([pod("grid", containerStatuses=[{"state": {"waiting": waiting}}])])
    condition = conditions.running(counts, awake=True, grids=1)
    assert (condition.holds, condition.reason, condition.message) == (
        False,
        "ImagePullBackOff",
        "no such image",
    )


def test_a_pod_that_cannot_be_scheduled_is_reported() -> None:
    unschedulable = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    counts = conditions.pods(
        [pod("executor", conditions=[{**unschedulable, "message": "0/3 nodes"}])]
    )
    condition = conditions.running(counts, awake=True, grids=1)
    assert (condition.reason, condition.message) == ("Unschedulable", "0/3 nodes")


def test_ready_drivers_and_running_executors_are_counted() -> None:
    ready = [{"type": "Ready", "status": "True"}]
    listed = [pod("grid", conditions=ready), pod("executor", phase="Running"), pod("executor")]
    assert conditions.pods(listed) == PodCounts(1, 1, None)


@pytest.mark.parametrize(
    ("applied", "awake", "grids", "watches", "state"),
    [
        (True, True, 1, [True], Cluster.State.RUNNING),
        (True, True, 1, [False], Cluster.State.PENDING),
        (True, True, 2, [True, False], Cluster.State.RESIZING),
        (True, False, 1, [False], Cluster.State.IDLE),
        (None, True, 1, [True], Cluster.State.FAILING),
    ],
)
def test_the_state_is_one_word(
    *, applied: bool | None, awake: bool, grids: int, watches: list[bool], state: str
) -> None:
    items = [
        ClusterCondition("Applied", applied, "", ""),
        conditions.running(RUNS, awake=awake, grids=grids),
        conditions.watching(awake=awake, watches=watches),
    ]
    assert conditions.state(items, grids=grids, awake=awake) == state
