"""Keeps the nodes of all grid epochs running, lets queries end, and measures.

Which nodes there should be is in the database; which there are it knows from its launcher. That a
partition has one node at a time is not its business but that of leases: two supervisors would be
wasteful, not wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import psycopg
from redis.exceptions import RedisError

from documents.outbox.database import close_relay_pool
from foundation import metrics
from foundation.environment import environment
from foundation.valkey_wire import ValkeyWire
from realtime.events.layer import GridLayer
from realtime.grid.launcher import Launcher, Task
from realtime.grid.layout import Grid, Node, read_grid, read_grids, read_retired, retire_before
from realtime.grid.measures import measure
from realtime.grid.restarts import Restarts
from realtime.grid.succession import Succession

logger = logging.getLogger(__name__)

ROUND_S = 0.25
#: How often the database is asked for grid epochs, and queries are looked at that may end.
CARE_S = 5.0
#: A retired grid of which nothing was left is looked at again after so long.
SWEEP_AGAIN_S = 600.0
CONNECT_TIMEOUT_S = 2.0
ANSWER_TIMEOUT_S = 5.0


class LauncherLost(Exception):
    """Nothing can be started any more: the process has to begin again."""


@dataclass
class _Place:
    """A node that should run."""

    restarts: Restarts = field(default_factory=Restarts)
    task: Task | None = None


class Supervisor:
    """For one event loop. What the launcher does may block, so it is done in a thread.

    It looks after all grid epochs that tenants share, or, where one is named, after that alone.
    """

    def __init__(
        self, launcher: Launcher, give_up: Callable[[], None], epoch: int | None = None
    ) -> None:
        self._launcher = launcher
        self._give_up = give_up
        self._epoch = epoch
        self._wire = ValkeyWire(
            environment().events,
            connect_timeout_s=CONNECT_TIMEOUT_S,
            answer_timeout_s=ANSWER_TIMEOUT_S,
        )
        self._grids: list[Grid] = []
        self._places: dict[Node, _Place] = {}
        self._slots = 0
        self._cared_s: float | None = None
        self._reports: dict[str, dict[str, object]] = {}
        self._succession = Succession()
        #: By retired grid: when nothing was left of it.
        self._swept_s: dict[Grid, float] = {}
        self._running: asyncio.Task[None] | None = None
        self._away = ""

    @property
    def ready(self) -> bool:
        """Whether every node that should run holds its lease and watches."""
        return bool(self._places) and all(
            self._reports.get(_label(node), {}).get("state") == "running" for node in self._places
        )

    def status(self) -> dict[str, object]:
        """Say how the nodes stand, for people and probes."""
        return {
            "nodes": {
                _label(node): self._reports.get(_label(node), {"state": "absent"})
                for node in self._places
            },
            "unavailable": self._away or None,
        }

    async def start(self) -> None:
        self._running = asyncio.create_task(self._run(), name="grid")

    async def stop(self) -> None:
        if self._running is not None:
            self._running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._running
        await asyncio.to_thread(self._launcher.close)
        await self._wire.aclose()
        await close_relay_pool()

    async def _run(self) -> None:
        while True:
            try:
                await self._round(time.monotonic())
                self._answers()
            except (psycopg.Error, RedisError, OSError) as failed:
                self._fails(failed)
            except LauncherLost as lost:
                logger.critical("the grid has to begin again: %s", lost)
                self._give_up()
                return
            except Exception:
                logger.exception("a round of the grid's supervisor failed")
            await asyncio.sleep(ROUND_S)

    async def _round(self, now_s: float) -> None:
        cares = self._cared_s is None or now_s - self._cared_s >= CARE_S
        if cares:
            self._grids = await self._wanted()
            self._cared_s = now_s
        await asyncio.to_thread(self._keep_running, now_s)
        for grid in self._grids:
            await self._look_after(grid, cares=cares)
        if cares and self._epoch is None:
            await self._hand_over(now_s)
            await self._sweep(now_s)

    async def _wanted(self) -> list[Grid]:
        return await (read_grids() if self._epoch is None else read_grid(self._epoch))

    def _keep_running(self, now_s: float) -> None:
        """Start what should run and does not, stop what should not. In a thread: it may block."""
        wanted = [node for grid in self._grids for node in grid.nodes()]
        self._make_room(wanted)
        for node in self._places.keys() - set(wanted):
            task = self._places.pop(node).task
            if task is not None:
                task.stop()
        for node in wanted:
            self._keep(node, self._places.setdefault(node, _Place()), now_s)

    def _make_room(self, wanted: list[Node]) -> None:
        lost = self._launcher.lost()
        if lost is not None:
            raise LauncherLost(lost)
        if len(wanted) > self._slots:
            if self._slots:
                raise LauncherLost("the grid has grown")
            # Another epoch beside this one needs as many again; one that was named stays alone.
            needed = 2 * len(wanted) + 2 if self._epoch is None else len(wanted)
            self._slots = self._launcher.open(needed)

    def _keep(self, node: Node, place: _Place, now_s: float) -> None:
        reason = None if place.task is None else place.task.ended()
        if reason is not None:
            logger.warning("node %s has ended: %s", _label(node), reason)
            metrics.GRID_NODE_RESTARTS.labels(_label(node)).inc()
            place.task = None
            place.restarts.ended(now_s)
        if place.task is None and place.restarts.due(now_s):
            place.task = self._launcher.start(node)
            place.restarts.started(now_s)

    async def _look_after(self, grid: Grid, *, cares: bool) -> None:
        layer = GridLayer(self._wire, grid.installation, grid.epoch)
        nodes = grid.nodes()
        time_us, found = await layer.look([node.name for node in nodes])
        for node in nodes:
            held = found.get(node.name)
            report: dict[str, object] = {"state": "absent"}
            if held is not None and held.until_ms * 1000 > time_us:
                report = {**json.loads(held.report or b"{}"), "token": held.token}
            self._reports[_label(node)] = report
            measure(_label(node), report)
        if cares:
            await layer.trim(grid.query_partitions)
            metrics.GRID_QUERIES_EXPIRED.inc(await layer.expire(grid.query_partitions))

    async def _hand_over(self, now_s: float) -> None:
        """Retire the grids before the newest one, once nobody can miss them."""
        watches = bool(self._grids) and all(
            self._reports[_label(node)].get("state") == "running"
            for node in self._grids[-1].nodes()
        )
        successor = self._succession.ripe(self._grids, watches=watches, now_s=now_s)
        if successor is not None:
            logger.info("grid %d (%s) takes over", successor.epoch, successor.size)
            await retire_before(successor)

    async def _sweep(self, now_s: float) -> None:
        """Delete what retired grids have left. Somebody may not know yet, so that more comes."""
        for grid in await read_retired():
            if now_s - self._swept_s.get(grid, -SWEEP_AGAIN_S) < SWEEP_AGAIN_S:
                continue
            if await GridLayer(self._wire, grid.installation, grid.epoch).sweep() == 0:
                self._swept_s[grid] = now_s

    def _fails(self, failed: Exception) -> None:
        """Log the first of many failures alike. Nodes go on meanwhile."""
        server = "database" if isinstance(failed, psycopg.Error) else "event layer"
        if self._away != server:
            logger.warning("the grid's supervisor waits for the %s: %s", server, failed)
        self._away = server

    def _answers(self) -> None:
        if self._away:
            logger.info("the %s answers again", self._away)
        self._away = ""


def _label(node: Node) -> str:
    """Return a node's name among those of all epochs."""
    return f"{node.epoch}:{node.name}"
