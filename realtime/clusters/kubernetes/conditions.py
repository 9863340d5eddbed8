"""The conditions of a cluster and their reasons, as pure functions of the observed state.

`Applied`   the objects are in the desired state
`Running`   the driver's pods are ready
`Watching`  all nodes hold their partitions and are ready
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from foundation.api.rendering import timestamp
from foundation.json_types import JsonObject, JsonValue
from realtime.clusters.kubernetes.objects.naming import COMPONENT, Object
from realtime.models import Cluster

MAX_MESSAGE_CHARS = 500


@dataclass(frozen=True, slots=True)
class ClusterCondition:
    """A condition that is true, false or unknown (None)."""

    type: str
    holds: bool | None
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PodCounts:
    """The state of a cluster's pods."""

    drivers_ready: int
    executors_running: int
    #: Why a pod does not run, as reported by Kubernetes: a reason and a sentence.
    trouble: tuple[str, str] | None


def running(pods: PodCounts, *, awake: bool, grids: int) -> ClusterCondition:
    """Return whether the drivers run."""
    if not awake:
        return ClusterCondition(
            "Running", False, "Asleep", "Stopped, because there has been no live query for a while."
        )
    if pods.drivers_ready >= grids:
        message = f"{pods.executors_running} executors are running."
        return ClusterCondition("Running", True, "DriverReady", message)
    if pods.trouble is not None:
        return ClusterCondition("Running", False, *pods.trouble)
    return ClusterCondition("Running", False, "Starting", "The driver's pod is not ready yet.")


def watching(*, awake: bool, watches: Sequence[bool], cause: str | None = None) -> ClusterCondition:
    """Return whether live queries are served; `cause` tells why no node can be started."""
    if not awake:
        message = "The grid starts with the first live query."
        return ClusterCondition("Watching", False, "Asleep", message)
    if watches and all(watches):
        return ClusterCondition("Watching", True, "AllNodesWatch", "All nodes are ready.")
    if cause is not None:
        return ClusterCondition(
            "Watching", False, "CannotStart", f"No node can be started: {cause}"
        )
    return ClusterCondition("Watching", False, "NodesMissing", "At least one node is not ready.")


def applied(changed: int) -> ClusterCondition:
    """Report that all objects are as described."""
    if not changed:
        return ClusterCondition("Applied", True, "AsDescribed", "All objects are as described.")
    message = f"{changed} objects were created or changed."
    return ClusterCondition("Applied", True, "Applied", message)


def state(current: Sequence[ClusterCondition], *, grids: int, awake: bool) -> str:
    """Return the overall state as one word."""
    holds = {condition.type: condition.holds for condition in current}
    if holds.get("Applied") is not True:
        return Cluster.State.FAILING
    if not awake:
        return Cluster.State.IDLE
    if grids > 1:
        return Cluster.State.RESIZING
    if holds.get("Watching"):
        return Cluster.State.RUNNING
    return Cluster.State.PENDING


def merged(
    before: Sequence[JsonValue], current: Sequence[ClusterCondition], now: datetime.datetime
) -> list[JsonValue]:
    """Merge new conditions into the stored ones. Others are unchanged; times record transitions."""
    known = {
        str(condition_json["type"]): condition_json
        for condition_json in before
        if isinstance(condition_json, dict)
    }
    for condition in current:
        known[condition.type] = _with_transition_time(known.get(condition.type), condition, now)
    return list(known.values())


def _with_transition_time(
    before: JsonObject | None, condition: ClusterCondition, now: datetime.datetime
) -> JsonObject:
    status = {True: "True", False: "False", None: "Unknown"}[condition.holds]
    since = timestamp(now)
    if before is not None and before["status"] == status:
        since = str(before["last_transition_at"])
    return {
        "type": condition.type,
        "status": status,
        "reason": condition.reason,
        "message": condition.message[:MAX_MESSAGE_CHARS],
        "last_transition_at": since,
    }


def pods(listed: Sequence[Object]) -> PodCounts:
    """Return the state of the pods."""
    ready = sum(_part(pod) == "grid" and _condition(pod, "Ready") for pod in listed)
    executors = sum(_part(pod) == "executor" and _phase(pod) == "Running" for pod in listed)
    troubles = [trouble for pod in listed if (trouble := _trouble(pod)) is not None]
    return PodCounts(ready, executors, troubles[0] if troubles else None)


def _trouble(pod: Object) -> tuple[str, str] | None:
    """Return why a pod does not run, if it reports that."""
    status = cast("Object", pod.get("status") or {})
    for container in cast("list[Object]", status.get("containerStatuses") or []):
        waiting = cast("Object", cast("Object", container.get("state") or {}).get("waiting") or {})
        reason = str(waiting.get("reason") or "")
        if reason not in ("", "ContainerCreating", "PodInitializing"):
            return reason, str(waiting.get("message") or f"A container is waiting: {reason}.")
    for condition in cast("list[Object]", status.get("conditions") or []):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return str(condition.get("reason") or "Unscheduled"), str(
                condition.get("message") or ""
            )
    return None


def _part(pod: Object) -> str:
    metadata = cast("Object", pod["metadata"])
    return str(cast("Object", metadata.get("labels") or {}).get(COMPONENT))


def _phase(pod: Object) -> str:
    return str(cast("Object", pod.get("status") or {}).get("phase"))


def _condition(pod: Object, kind: str) -> bool:
    status = cast("Object", pod.get("status") or {})
    return any(
        condition.get("type") == kind and condition.get("status") == "True"
        for condition in cast("list[Object]", status.get("conditions") or [])
    )
