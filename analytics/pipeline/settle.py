"""Runs every stage of a dataset in sequence, without waiting for full batches."""

from __future__ import annotations

import contextlib
from uuid import UUID

from analytics.pipeline import ledger
from analytics.pipeline.catalogue import Authority
from analytics.pipeline.decisions import BatchLimits, PipelineStep, decide
from analytics.pipeline.ledger import StepSuperseded
from analytics.pipeline.steps import run_step
from analytics.pipeline.workers import Workers

#: Everything is due at once.
EAGER = BatchLimits(scu_bytes=1, scu_age_s=0.0, authority_age_s=0.0)


def settle(workers: Workers, authority: Authority, dataset_id: UUID) -> None:
    """Move all uploads of a dataset to the authority. Concurrent uploads are included."""
    while (dataset := ledger.find_dataset(dataset_id)) is not None:
        due = {planned.step: planned for planned in decide(dataset.now, EAGER, [])}
        for step in (PipelineStep.REMAP, PipelineStep.SORT, PipelineStep.AUTHORITY):
            if step in due:
                with contextlib.suppress(StepSuperseded):
                    run_step(workers, authority, dataset, due[step])
                break
        else:
            return
