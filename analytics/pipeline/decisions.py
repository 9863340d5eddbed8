"""Decides the next steps for a dataset from its state. Pure: nothing here reads or writes.

Uploads become a sorted run when there are enough of them, or the oldest has waited long enough;
where keys are stored as ids, the ids are assigned first, one batch after the other. Runs of one
level are merged eight at a time. Runs enter the authority when they reach an eighth of its size, or
have waited long enough. So each row is rewritten a bounded number of times.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from uuid import UUID

FAN_IN = 8
#: Maximum number of runs that enter the authority at once; each is an open file.
MAX_ENTERING = 64
AUTHORITY_SHARE = 8


class PipelineStep(StrEnum):
    """The stages after ingest."""

    REMAP = "remap"
    SORT = "sort"
    MERGE = "merge"
    AUTHORITY = "authority"


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """The size or age at which a batch is due."""

    scu_bytes: int
    scu_age_s: float
    authority_age_s: float


@dataclass(frozen=True, slots=True)
class PendingUpload:
    """A committed upload that is not part of a run yet."""

    number: int
    bytes: int
    at: datetime.datetime


@dataclass(frozen=True, slots=True)
class ActiveRun:
    """A run that is not part of the authority yet."""

    id: UUID
    first: int
    last: int
    level: int
    bytes: int
    first_at: datetime.datetime


@dataclass(frozen=True, slots=True)
class DatasetState:
    """A dataset with its contiguous runs, then the remapped ones, then the pending uploads."""

    authority_bytes: int
    runs: Sequence[ActiveRun]
    waiting: Sequence[PendingUpload]
    at: datetime.datetime
    #: Whether keys need ids before they are sorted, and the runs whose keys have them.
    has_ids: bool = False
    remapped: Sequence[ActiveRun] = ()


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step over the uploads from `first` to `last`."""

    step: PipelineStep
    first: int
    last: int
    level: int = 0


def decide(
    dataset: DatasetState, limits: BatchLimits, busy: Sequence[PlannedStep]
) -> list[PlannedStep]:
    """Return the steps to start, at most one of each kind, besides those in progress."""
    steps = []
    kinds = {step.step for step in busy}
    if (
        PipelineStep.REMAP not in kinds
        and dataset.has_ids
        and (batch := _batch(dataset, limits)) is not None
    ):
        steps.append(PlannedStep(PipelineStep.REMAP, *batch))
    if PipelineStep.SORT not in kinds and (sort := _sort(dataset, limits)) is not None:
        steps.append(sort)
    free_runs = _free_runs(dataset.runs, busy)
    if PipelineStep.AUTHORITY not in kinds and (enter := _enter(dataset, limits, busy)) is not None:
        steps.append(enter)
        free_runs = [run for run in free_runs if run.first > enter.last]
    if PipelineStep.MERGE not in kinds and (merge := _merge(free_runs)) is not None:
        steps.append(merge)
    return steps


def _sort(dataset: DatasetState, limits: BatchLimits) -> PlannedStep | None:
    if not dataset.has_ids:
        batch = _batch(dataset, limits)
        return None if batch is None else PlannedStep(PipelineStep.SORT, *batch)
    if not dataset.remapped:
        return None
    return PlannedStep(PipelineStep.SORT, dataset.remapped[0].first, dataset.remapped[0].last)


def _batch(dataset: DatasetState, limits: BatchLimits) -> tuple[int, int] | None:
    """Return the first and last upload of a batch, if one is due."""
    batch: list[PendingUpload] = []
    size = 0
    for upload in dataset.waiting:
        if batch and size + upload.bytes > limits.scu_bytes:
            break
        batch.append(upload)
        size += upload.bytes
    if not batch:
        return None
    is_full = size >= limits.scu_bytes or len(batch) < len(dataset.waiting)
    if not (is_full or _age_s(dataset, batch[0].at) >= limits.scu_age_s):
        return None
    return batch[0].number, batch[-1].number


def _free_runs(runs: Sequence[ActiveRun], busy: Sequence[PlannedStep]) -> list[ActiveRun]:
    """Return the runs that no step in progress uses."""
    return [
        run for run in runs if not any(b.first <= run.last and run.first <= b.last for b in busy)
    ]


def _merge(runs: Sequence[ActiveRun]) -> PlannedStep | None:
    """Return a merge of the first eight adjacent runs of the lowest level that has eight."""
    best: PlannedStep | None = None
    for index in range(len(runs) - FAN_IN + 1):
        group = runs[index : index + FAN_IN]
        level = group[0].level
        is_level = all(run.level == level for run in group)
        is_whole = all(a.last + 1 == b.first for a, b in pairwise(group))
        if is_level and is_whole and (best is None or level + 1 < best.level):
            best = PlannedStep(PipelineStep.MERGE, group[0].first, group[-1].last, level + 1)
    return best


def _enter(
    dataset: DatasetState, limits: BatchLimits, busy: Sequence[PlannedStep]
) -> PlannedStep | None:
    entering: list[ActiveRun] = []
    for run in _free_runs(dataset.runs, busy):
        if len(entering) == MAX_ENTERING or (entering and entering[-1].last + 1 != run.first):
            break
        entering.append(run)
    if not entering or entering[0] is not dataset.runs[0]:
        return None
    size = sum(run.bytes for run in entering)
    threshold = max(dataset.authority_bytes // AUTHORITY_SHARE, limits.scu_bytes)
    if size < threshold and _age_s(dataset, entering[0].first_at) < limits.authority_age_s:
        return None
    return PlannedStep(PipelineStep.AUTHORITY, entering[0].first, entering[-1].last)


def _age_s(dataset: DatasetState, time: datetime.datetime) -> float:
    return (dataset.at - time).total_seconds()
