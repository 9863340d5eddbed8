"""The pipeline of an installation that may have no datasets.

The columnar libraries take a hundred megabytes before any work. So this polls for a dataset, and
only loads and starts the coordinator once it finds one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import psycopg
from django.db import DatabaseError, connections

from analytics.models import Dataset
from foundation.environment import environment

if TYPE_CHECKING:
    from analytics.pipeline.coordinator import Coordinator

logger = logging.getLogger(__name__)

LOOK_S = 1.0
ALIAS = "relay"


class Pipeline:
    """The pipeline of one event loop. `give_up` is called when nothing can be run any more."""

    def __init__(self, give_up: Callable[[], None]) -> None:
        self._give_up = give_up
        self._coordinator: Coordinator | None = None
        self._task: asyncio.Task[None] | None = None
        self._asked = False

    @property
    def ready(self) -> bool:
        """Whether it has been able to look for work."""
        return self._asked and (self._coordinator is None or self._coordinator.ready)

    def status(self) -> dict[str, object]:
        """Return the status, for people and probes."""
        if self._coordinator is None:
            return {"leading": False, "steps": []}
        return self._coordinator.status()

    async def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="pipeline")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._coordinator is not None:
            await self._coordinator.stop()

    async def _run(self) -> None:
        try:
            while not await self._has_datasets():  # noqa: ASYNC110 -- others make them
                await asyncio.sleep(LOOK_S)
            coordinator = _load(self._give_up)
            await coordinator.start()
        except Exception:
            # Nothing else would ever start a step.
            logger.exception("the pipeline cannot be started")
            self._give_up()
        else:
            self._coordinator = coordinator

    async def _has_datasets(self) -> bool:
        try:
            exist = await asyncio.to_thread(_datasets_exist)
        except (psycopg.Error, DatabaseError) as away:
            logger.warning("the pipeline is paused: %s", away)
            return False
        self._asked = True
        return exist


def _datasets_exist() -> bool:
    try:
        return Dataset.unscoped.using(ALIAS).exists()
    finally:
        connections[ALIAS].close()


def _load(give_up: Callable[[], None]) -> Coordinator:
    from analytics.pipeline.coordinator import Coordinator  # noqa: PLC0415
    from analytics.pipeline.workers import ThreadWorkers  # noqa: PLC0415

    if environment().rillbase_analytics_workers == "threads":
        return Coordinator(ThreadWorkers(), give_up)
    # Spark takes a second to import, and is installed only where it is used.
    from analytics.pipeline.spark import SparkWorkers  # noqa: PLC0415

    return Coordinator(SparkWorkers(), give_up)
