"""Keeps nodes running through a launcher, based on their reports. A node that exits or stops
reporting is restarted. If that does not help, the launcher itself is broken (Spark's executors may
reject tasks while its driver looks healthy), and the process has to restart. `vitals` and
`restarts` decide; this module acts.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
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
#: Share of it that a headline may take, so that what follows it is not cut off.
MAX_HEADLINE_CHARS = 120


_CAUSED_BY, _TRACEBACK = "Caused by: ", "Traceback (most recent call last):"


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

    def __init__(
        self, launcher: Launcher, *, spare: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._launcher = launcher
        self._clock = clock
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
        self,
        now_s: float,
        heartbeats: Mapping[NodeSpec, Heartbeat | None],
        start_factor: float = 1.0,
    ) -> None:
        """Record the last reports of the running nodes."""
        for node, heartbeat in heartbeats.items():
            slot = self._node_slots.get(node)
            if slot is not None and slot.handle is not None:
                slot.health = slot.vitals.observe(
                    now_s, heartbeat, room=self._has_room, start_factor=start_factor
                )

    def reconcile(self, now_s: float, nodes: Sequence[NodeSpec]) -> None:
        """Start missing nodes and stop superfluous ones."""
        lost = self._launcher.lost()
        if lost is not None:
            raise LauncherLost(lost)
        if not self._open(now_s, len(nodes)):
            return
        self._check_room(now_s, len(nodes))
        for node in self._node_slots.keys() - set(nodes):
            handle = self._node_slots.pop(node).handle
            if handle is not None:
                handle.stop()
        for node in nodes:
            self._reconcile_node(node, self._node_slots.setdefault(node, _NodeSlot()), now_s)

    def close(self) -> None:
        self._launcher.close()

    def _open(self, now_s: float, n_nodes: int) -> bool:
        if n_nodes <= self._slots:
            return self.opened
        if self.opened:
            raise LauncherLost("the grid has been resized")
        if not self._opening.due(now_s):
            return False
        needed = 2 * n_nodes + 2 if self._spare else n_nodes
        try:
            self._slots = self._launcher.open(needed)
        except Exception as error:  # noqa: BLE001 -- it is reported and retried
            self._cause = cause_of(error)
            # The pause begins when the attempt has ended, which may itself take longer.
            delay_s = self._opening.failed(self._clock())
            logger.warning("no node can be started: %s; retrying in %.1f s", self._cause, delay_s)
            return False
        self._opening.succeeded()
        self._cause = None
        return True

    def _check_room(self, now_s: float, n_nodes: int) -> None:
        """Give machines time to appear: a node without room is not counted as failing."""
        passed_s = min(now_s - self._reconciled_s, LONGEST_LOOK_S)
        self._reconciled_s = now_s
        self._has_room = self._launcher.room() >= n_nodes
        short_s = 0.0 if self._short_s is None else self._short_s + passed_s
        self._short_s = None if self._has_room else short_s
        if not self._has_room and short_s >= ROOM_WITHIN_S:
            raise LauncherLost(f"there was no room for {n_nodes} nodes for {ROOM_WITHIN_S:g} s")

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
    """Return the informative lines of a failure, which may contain a Java stack trace: what failed,
    and the last of its causes.
    """
    lines = [text for line in str(failed).splitlines() if (text := line.lstrip(": \t").rstrip())]
    lines = lines or [type(failed).__name__]
    headline = next((line for line in lines if "Exception: " in line), lines[0])
    causes = [line.removeprefix(_CAUSED_BY) for line in lines if line.startswith(_CAUSED_BY)]
    # The cause of a failed task is a Python traceback, which its headline has already named.
    named = [cause for cause in causes if not cause.endswith(_TRACEBACK) and cause not in headline]
    if named:
        headline = f"{headline[:MAX_HEADLINE_CHARS]}: {named[-1]}"
    return headline[:MAX_CAUSE_CHARS]
