"""The pipeline, moved by hand: one step at a time, when a test says so."""

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
    from tests.analytics.made import Made


class Inline:
    """Workers that do a task where they are asked."""

    def run(self, pool: str, tasks: Sequence[str], group: str = "") -> list[str]:
        return [run_task(task) for task in tasks]

    def cancel(self, group: str) -> None:
        """Whatever was asked has been done."""

    def release(self) -> None:
        """Nothing is held."""

    def close(self) -> None:
        """Nothing runs on."""


class Failing(Inline):
    """Workers that do tasks and die before they can tell, now and then."""

    def __init__(self, rng: random.Random, share: float) -> None:
        self._rng = rng
        self._share = share

    def run(self, pool: str, tasks: Sequence[str], group: str = "") -> list[str]:
        found = super().run(pool, tasks)
        if self._rng.random() < self._share:
            raise OSError("the worker died")
        return found


def standing_of(shop: Made) -> PipelineDataset:
    found = ledger.find_dataset(shop.id)
    assert found is not None
    return found


def authority_of(shop: Made) -> Authority:
    return Authority(open_catalogue(), shop.id)


def due(shop: Made, step: PipelineStep, limits: BatchLimits = EAGER) -> PlannedStep | None:
    """Return the step of a kind that is to be done next, if one is."""
    found = decide(standing_of(shop).now, limits, [])
    return next((wanted for wanted in found if wanted.step is step), None)


def do(
    shop: Made, step: PipelineStep, workers: Workers | None = None, limits: BatchLimits = EAGER
) -> bool:
    """Do a step of a kind, if one is due."""
    wanted = due(shop, step, limits)
    if wanted is None:
        return False
    run_step(workers or Inline(), authority_of(shop), standing_of(shop), wanted)
    return True


def drain(shop: Made) -> None:
    """Bring everything into the authority."""
    settle(Inline(), authority_of(shop), shop.id)
