"""Keeps the nodes of all grid epochs running, ends expired queries, and exports metrics. The
database determines which nodes there should be; the launcher knows which ones run. Leases, not the
supervisor, ensure that a partition has one node at a time: two supervisors would be wasteful, not
wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from functools import partial

import psycopg
from redis.exceptions import RedisError

from documents.backend import Backend
from foundation import metrics
from foundation.environment import environment
from foundation.valkey_wire import ValkeyWire
from realtime.grid.deadline import call_within
from realtime.grid.keeper import LauncherLost, NodeKeeper, label
from realtime.grid.launcher import Launcher
from realtime.grid.layout import (
    GridEpoch,
    NodeSpec,
    read_grid,
    read_grids,
    read_retired,
    retire_before,
)
from realtime.grid.measures import measure
from realtime.grid.succession import Succession
from realtime.grid.vitals import Heartbeat, current_start_factor

logger = logging.getLogger(__name__)

ROUND_S = 0.25
#: How often grid epochs are read from the database, and queries are checked for expiry.
REFRESH_S = 5.0
#: Interval at which a retired grid without remaining data is checked again.
SWEEP_AGAIN_S = 600.0
CONNECT_TIMEOUT_S = 2.0
ANSWER_TIMEOUT_S = 5.0
#: Data read from the nodes is stale after this time.
REPORTS_LAST_S = 5.0
#: A launcher that does not respond for this long hangs. Preparing takes longer.
LAUNCHER_DEADLINE_S, OPEN_DEADLINE_S = 15.0, 240.0


class GridSupervisor:
    """For one event loop. Calls of the launcher may block, so they run in a thread. It supervises
    all shared grid epochs, or, if one is named, only that one.
    """

    def __init__(self, launcher: Launcher, epoch: int | None = None) -> None:
        # A named epoch is the only one; the shared one may have a successor.
        self._keeper = NodeKeeper(launcher, spare=epoch is None)
        self._epoch = epoch
        self._wire = ValkeyWire(
            environment().events,
            connect_timeout_s=CONNECT_TIMEOUT_S,
            answer_timeout_s=ANSWER_TIMEOUT_S,
        )
        self._grids: list[GridEpoch] = []
        self._refreshed_s: float | None = None
        self._reports: dict[str, dict[str, object]] = {}
        self._successions = {backend: Succession() for backend in Backend}
        #: By retired grid: when nothing was left of it.
        self._swept_s: dict[GridEpoch, float] = {}
        self._unavailable = ""
        self._observed_s: float | None = None

    @property
    def ready(self) -> bool:
        """Whether every node that should run holds its lease and is ready."""
        nodes = self._keeper.nodes
        return bool(nodes) and all(self._watches(node) for node in nodes)

    def readiness(self) -> dict[str, object]:
        """Return the nodes' state as numbers."""
        nodes = self._keeper.nodes
        missing = [node for node in nodes if not self._watches(node)]
        return {
            "nodes": len(nodes),
            "watching": len(nodes) - len(missing),
            "stale_query_partitions": sorted({node.query_partition for node in missing}),
        }

    def status(self) -> dict[str, object]:
        """Describe the nodes' state, for operators."""
        return {
            "nodes": {label(node): self._report(node) for node in self._keeper.nodes},
            "unavailable": self._unavailable or None,
            "launcher": self._keeper.status(),
            "readiness": self.readiness(),
        }

    def _watches(self, node: NodeSpec) -> bool:
        return self._report(node).get("state") == "running"

    def _report(self, node: NodeSpec) -> dict[str, object]:
        """Return the report of a node, unless it is too old."""
        if self._observed_s is None or time.monotonic() - self._observed_s > REPORTS_LAST_S:
            return {"state": "unknown"}
        return self._reports.get(label(node), {"state": "absent"})

    async def run(self) -> None:
        """Supervise the grids until cancelled. Raise `LauncherLost` when no node can start."""
        try:
            await self._run()
        finally:
            with contextlib.suppress(TimeoutError):
                await call_within(LAUNCHER_DEADLINE_S, self._keeper.close)
            await self._wire.aclose()

    async def _run(self) -> None:
        while True:
            try:
                await self._round(time.monotonic())
                self._note_recovery()
            except (psycopg.Error, RedisError, OSError) as error:
                self._note_failure(error)
            except LauncherLost:
                raise
            except Exception:
                logger.exception("a round of the grid's supervisor failed")
            await asyncio.sleep(ROUND_S)

    async def _round(self, now_s: float) -> None:
        is_due = self._refreshed_s is None or now_s - self._refreshed_s >= REFRESH_S
        if is_due:
            self._grids = await self._grid_epochs()
            self._refreshed_s = now_s
        await self._reconcile(now_s)
        for grid in self._grids:
            await self._observe(grid, is_due=is_due)
        self._observed_s = time.monotonic()
        if is_due and self._epoch is None:
            await self._hand_over(now_s)
            await self._sweep(now_s)

    async def _grid_epochs(self) -> list[GridEpoch]:
        return await (read_grids() if self._epoch is None else read_grid(self._epoch))

    async def _reconcile(self, now_s: float) -> None:
        nodes = [node for grid in self._grids for node in grid.nodes()]
        deadline_s = LAUNCHER_DEADLINE_S if self._keeper.opened else OPEN_DEADLINE_S
        try:
            await call_within(deadline_s, partial(self._keeper.reconcile, now_s, nodes))
        except TimeoutError:
            raise LauncherLost(f"it did not respond within {deadline_s:g} s") from None

    async def _observe(self, grid: GridEpoch, *, is_due: bool) -> None:
        layer = grid.layer(self._wire)
        nodes = grid.nodes()
        time_us, leases = await layer.leases([node.name for node in nodes])
        for node in nodes:
            lease = leases.get(node.name)
            report: dict[str, object] = {"state": "absent"}
            if lease is not None and lease.until_ms * 1000 > time_us:
                report = {**json.loads(lease.report or b"{}"), "token": lease.token}
            self._reports[label(node)] = report
            measure(label(node), report)
        started = self._keeper.holders(nodes)
        heartbeats = await layer.heartbeats(list(started.values()))
        parsed = [
            None if heartbeat is None else Heartbeat.parse(heartbeat) for heartbeat in heartbeats
        ]
        seen = dict(zip(started, parsed, strict=True))
        self._keeper.observe(time.monotonic(), seen, current_start_factor())
        if is_due:
            await layer.note_supervisor(json.dumps(self._keeper.status()))
            await layer.trim(grid.query_partitions)
            metrics.GRID_QUERIES_EXPIRED.inc(await layer.expire(grid.query_partitions))

    async def _hand_over(self, now_s: float) -> None:
        """Retire the grids before the newest one of each backend, once no hub needs them."""
        for backend, succession in self._successions.items():
            grids = [grid for grid in self._grids if grid.backend == backend]
            watches = bool(grids) and all(
                self._reports[label(node)].get("state") == "running" for node in grids[-1].nodes()
            )
            successor = succession.ready_successor(grids, watches=watches, now_s=now_s)
            if successor is not None:
                logger.info("grid %d (%s) takes over", successor.epoch, successor.size)
                await retire_before(successor)

    async def _sweep(self, now_s: float) -> None:
        """Delete the remaining data of retired grids. Late writers may still add more."""
        for grid in await read_retired():
            if now_s - self._swept_s.get(grid, -SWEEP_AGAIN_S) < SWEEP_AGAIN_S:
                continue
            if await grid.layer(self._wire).sweep() == 0:
                self._swept_s[grid] = now_s

    def _note_failure(self, failed: Exception) -> None:
        """Log the first of many identical failures. Nodes continue meanwhile."""
        server = "database" if isinstance(failed, psycopg.Error) else "event layer"
        if self._unavailable != server:
            logger.warning("the grid's supervisor waits for the %s: %s", server, failed)
        self._unavailable = server

    def _note_recovery(self) -> None:
        if self._unavailable:
            logger.info("the %s responds again", self._unavailable)
        self._unavailable = ""
