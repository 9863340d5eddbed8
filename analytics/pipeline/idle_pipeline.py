"""The pipeline of an installation that may have no datasets.

The columnar libraries take a hundred megabytes even when idle. So this polls for work, and loads
and starts the coordinator only once there is some.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
from django.db import DatabaseError, connections

from analytics.models import Dataset
from foundation.environment import OBJECT_STORE_SCHEME, environment

if TYPE_CHECKING:
    from analytics.pipeline.coordinator import Coordinator

logger = logging.getLogger(__name__)

POLL_S = 1.0
#: The folders of files that are not in the authority, or were merged into it recently.
FOLDERS = ("segments", "remapped", "sorted", "merged")
#: The requests of large queries (`analytics.requests`).
REQUESTS = "scans/*/*.request"
ALIAS = "relay"


class PipelineLost(Exception):
    """The workers are lost: a new coordinator has to start new ones."""


class Pipeline:
    """The pipeline of one event loop."""

    def __init__(self) -> None:
        self._coordinator: Coordinator | None = None
        self._has_checked = False

    @property
    def ready(self) -> bool:
        """Whether it has been able to check for work."""
        return self._has_checked and (self._coordinator is None or self._coordinator.ready)

    def status(self) -> dict[str, object]:
        """Return the status, for operators and probes."""
        if self._coordinator is None:
            return {"leading": False, "steps": []}
        return self._coordinator.status()

    async def run(self) -> None:
        """Run stages until cancelled; raise `PipelineLost` if the workers are lost."""
        while not await self._has_work():  # noqa: ASYNC110 -- other processes create datasets
            await asyncio.sleep(POLL_S)
        loop, pipeline_lost = asyncio.get_running_loop(), asyncio.Event()

        def on_workers_lost() -> None:
            loop.call_soon_threadsafe(pipeline_lost.set)

        coordinator = await asyncio.to_thread(_load, on_workers_lost)
        await coordinator.start()
        self._coordinator = coordinator
        try:
            await pipeline_lost.wait()
            raise PipelineLost
        finally:
            await coordinator.stop()

    async def _has_work(self) -> bool:
        try:
            has_work = await asyncio.to_thread(_datasets_exist)
        except (psycopg.Error, DatabaseError) as error:
            logger.warning("the pipeline is paused: %s", error)
            return False
        self._has_checked = True
        return has_work


def _datasets_exist() -> bool:
    try:
        return _has_files() and Dataset.unscoped.using(ALIAS).exists()
    finally:
        connections[ALIAS].close()


def _has_files() -> bool:
    """Return whether a dataset has files outside the authority, or had some recently.

    An object store is not listed: if one is configured, datasets are assumed to exist.
    """
    settings = environment()
    folder_path = settings.rillbase_analytics_dir or str(settings.rillbase_data_dir / "analytics")
    if folder_path.startswith(OBJECT_STORE_SCHEME):
        return True
    patterns = [*(f"*/{folder}/*" for folder in FOLDERS), REQUESTS]
    return any(any(Path(folder_path).glob(pattern)) for pattern in patterns)


def _load(on_workers_lost: Callable[[], None]) -> Coordinator:
    from analytics.pipeline.coordinator import Coordinator  # noqa: PLC0415
    from analytics.pipeline.workers import ThreadWorkers  # noqa: PLC0415

    if environment().rillbase_analytics_workers == "threads":
        return Coordinator(ThreadWorkers(), on_workers_lost)
    # Spark takes a second to import, and is installed only where it is used.
    from analytics.pipeline.spark import SparkWorkers  # noqa: PLC0415

    return Coordinator(SparkWorkers(), on_workers_lost)
