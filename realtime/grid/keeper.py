"""Keeps nodes running through a launcher, based on their reports. A node that exits or stops
reporting is restarted. If that does not help, the launcher itself is broken (Spark's executors may
reject tasks while its driver looks healthy), and the process has to restart. `vitals` and
`restarts` decide; this module acts.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from foundation import metrics
from realtime.grid.launcher import Launcher, NodeHandle
from realtime.grid.layout import NodeSpec
from realtime.grid.restarts import RestartDelays, RetryTimer
from realtime.grid.vitals import FAILURES, LONGEST_LOOK_S, Heartbeat, NodeHealth, Vitals

logger = logging.getLogger(__name__)

#: Time within which machines for all nodes must be available; pods may wait for an image.
ROOM_WITHIN_S = 300.0
MAX_CAUSE_CHARS = 300


class LauncherLost(Exception):
    """Nothing can be started any more: the process has to restart."""


@dataclass
class _NodeSlot:
    """A node that should run."""

    restarts: RestartDelays = field(default_factory=RestartDelays)
    handle: NodeHandle | None = None
    vitals: Vitals = field(default_factory=Vitals)
    health: NodeHealth = NodeHealth.STARTING


class NodeKeeper:
    """`reconcile` may block; `observe` does not. Only one of them is called at a time."""

    def __init__(self, launcher: Launcher, *, spare: bool) -> None:
        self._launcher = launcher
        #: Whether a second epoch may be added, which needs as many slots again.
        self._spare = spare
        self._node_slots: dict[NodeSpec, _NodeSlot] = {}
        self._slots = 0
        self._has_room = True
        self._short_s: float | None = None
        self._reconciled_s = 0.0
        self._opening = RetryTimer()
        self._cause: str | None = None

    @property
    def nodes(self) -> list[NodeSpec]:
        """The nodes that should run."""
        return list(self._node_slots)

    @property
    def opened(self) -> bool:
        """Whether anything could be started so far."""
        return self._slots > 0

    def holders(self, nodes: Sequence[NodeSpec]) -> dict[NodeSpec, str]:
        """Return the names of the running nodes."""
        slots = {node: self._node_slots[node] for node in nodes if node in self._node_slots}
        return {node: slot.handle.holder for node, slot in slots.items() if slot.handle is not None}

    def status(self) -> dict[str, object]:
        """Return whether nodes can be started, and if not, why."""
        state = "failing" if self._cause else "open" if self.opened else "opening"
        return {"state": state, "cause": self._cause, "failures": self._opening.failures}

    def observe(
        self, now_s: float, heartbeats: Mapping[NodeSpec, Heartbeat | None], patience: float = 1.0
    ) -> None:
        """Record the last reports of the running nodes."""
        for node, heartbeat in heartbeats.items():
            slot = self._node_slots.get(node)
            if slot is not None and slot.handle is not None:
                slot.health = slot.vitals.observe(
                    now_s, heartbeat, room=self._has_room, patience=patience
                )

    def reconcile(self, now_s: float, wanted: Sequence[NodeSpec]) -> None:
        """Start missing nodes and stop superfluous ones."""
        lost = self._launcher.lost()
        if lost is not None:
            raise LauncherLost(lost)
        if not self._open(now_s, len(wanted)):
            return
        self._check_room(now_s, len(wanted))
        for node in self._node_slots.keys() - set(wanted):
            handle = self._node_slots.pop(node).handle
            if handle is not None:
                handle.stop()
        for node in wanted:
            self._reconcile_node(node, self._node_slots.setdefault(node, _NodeSlot()), now_s)

    def close(self) -> None:
        self._launcher.close()

    def _open(self, now_s: float, wanted: int) -> bool:
        if wanted <= self._slots:
            return self.opened
        if self.opened:
            raise LauncherLost("the grid has been resized")
        if not self._opening.due(now_s):
            return False
        needed = 2 * wanted + 2 if self._spare else wanted
        try:
            self._slots = self._launcher.open(needed)
        except Exception as error:  # noqa: BLE001 -- it is reported and retried
            self._cause = cause_of(error)
            delay_s = self._opening.failed(now_s)
            logger.warning("no node can be started: %s; retrying in %.1f s", self._cause, delay_s)
            return False
        self._opening.succeeded()
        self._cause = None
        return True

    def _check_room(self, now_s: float, wanted: int) -> None:
        """Give machines time to appear: a node without room is not counted as failing."""
        passed_s = min(now_s - self._reconciled_s, LONGEST_LOOK_S)
        self._reconciled_s = now_s
        self._has_room = self._launcher.room() >= wanted
        short_s = 0.0 if self._short_s is None else self._short_s + passed_s
        self._short_s = None if self._has_room else short_s
        if not self._has_room and short_s >= ROOM_WITHIN_S:
            raise LauncherLost(f"there was no room for {wanted} nodes for {ROOM_WITHIN_S:g} s")

    def _reconcile_node(self, node: NodeSpec, slot: _NodeSlot, now_s: float) -> None:
        reason = None if slot.handle is None else slot.handle.ended()
        if slot.handle is not None and reason is None and slot.health in FAILURES:
            reason = str(slot.health)
            slot.handle.kill()
        if reason is not None:
            logger.warning("node %s has exited: %s", label(node), reason)
            metrics.GRID_NODE_RESTARTS.labels(label(node)).inc()
            slot.restarts.ended(now_s, placed=slot.vitals.placed)
            slot.handle = None
            if slot.restarts.exhausted:
                raise LauncherLost(f"node {label(node)} cannot be placed: {reason}")
        if slot.handle is None and slot.restarts.due(now_s):
            slot.vitals, slot.health = Vitals(), NodeHealth.STARTING
            slot.handle = self._launcher.start(node)
            slot.restarts.started(now_s)


def label(node: NodeSpec) -> str:
    """Return a node's name among those of all epochs."""
    return f"{node.epoch}:{node.name}"


def cause_of(failed: Exception) -> str:
    """Return the informative line of a failure, which may contain a Java stack trace."""
    lines = [line.strip() for line in str(failed).splitlines() if line.strip()]
    lines = lines or [type(failed).__name__]
    return next((line for line in lines if "Exception: " in line), lines[0])[:MAX_CAUSE_CHARS]
