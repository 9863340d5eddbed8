"""Drives the pipeline by hand, one step at a time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from analytics.pipeline import ledger
from analytics.pipeline.catalogue import Authority, open_catalogue
from analytics.pipeline.decisions import BatchLimits, PipelineStep, PlannedStep, decide
from analytics.pipeline.ledger import PipelineDataset
from analytics.pipeline.settle import EAGER, settle
from analytics.pipeline.steps import run_step
from analytics.pipeline.tasks import run_task
from analytics.pipeline.workers import Workers

if TYPE_CHECKING:
    from tests.analytics.dataset_client import DatasetClient


class Inline:
    """Workers that run each task in the calling thread."""

    def run(self, pool: str, tasks: Sequence[str], group: str = "") -> list[str]:
        return [run_task(task) for task in tasks]

    def cancel(self, group: str) -> None:
        """Do nothing: every task has been completed."""

    def release(self) -> None:
        """Do nothing: no resources are held."""

    def close(self) -> None:
        """Do nothing: no task is running."""


class Failing(Inline):
    """Workers that sometimes die after a task, before they can report its result."""

    def __init__(self, rng: random.Random, share: float) -> None:
        self._rng = rng
        self._share = share

    def run(self, pool: str, tasks: Sequence[str], group: str = "") -> list[str]:
        results = super().run(pool, tasks)
        if self._rng.random() < self._share:
            raise OSError("the worker died")
        return results


def standing_of(shop: DatasetClient) -> PipelineDataset:
    result = ledger.find_dataset(shop.id)
    assert result is not None
    return result


def authority_of(shop: DatasetClient) -> Authority:
    return Authority(open_catalogue(), shop.id)


def due(shop: DatasetClient, step: PipelineStep, limits: BatchLimits = EAGER) -> PlannedStep | None:
    """Return the next due step of a kind, or None."""
    result = decide(standing_of(shop).now, limits, [])
    return next((planned for planned in result if planned.step is step), None)


def do(
    shop: DatasetClient,
    step: PipelineStep,
    workers: Workers | None = None,
    limits: BatchLimits = EAGER,
) -> bool:
    """Run a step of a kind, if one is due."""
    planned = due(shop, step, limits)
    if planned is None:
        return False
    run_step(workers or Inline(), authority_of(shop), standing_of(shop), planned)
    return True


def drain(shop: DatasetClient) -> None:
    """Run steps until everything is in the authority."""
    settle(Inline(), authority_of(shop), shop.id)
