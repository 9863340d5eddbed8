"""PostgreSQL's record of datasets' files, and the transaction that ends a stage.

The transaction is a compare-and-set: under the lock of the dataset's row, the token must be current
and the stage's inputs must still be in force. Otherwise nothing changes, and the output files of
the stage remain unreferenced.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db import transaction
from django.db.models import F, Max, Min, Q, QuerySet, Sum
from django.utils import timezone

from analytics.models import Dataset, FileStage, Run, StoredFile, Upload
from analytics.pipeline.decisions import (
    ActiveRun,
    DatasetState,
    PendingUpload,
    PipelineStep,
    PlannedStep,
)
from analytics.pipeline.tasks import WrittenFile
from analytics.rows.keys import from_plain, to_text
from analytics.table_definitions import read_definition
from foundation.ids import uuid7

ALIAS = "relay"
#: Maximum number of waiting uploads read at once, which is several batches.
MAX_WAITING = 10_000


class StepSuperseded(Exception):
    """Another process has done or taken over the step; its output is discarded."""


@dataclass(frozen=True, slots=True)
class PipelineDataset:
    """A dataset with work for the pipeline."""

    id: UUID
    tenant_id: UUID
    definition: str
    token: int
    now: DatasetState
    authority: Run | None


@dataclass(frozen=True, slots=True)
class StepResult:
    """The output of a step."""

    planned: PlannedStep
    files: Sequence[WrittenFile]
    #: For the authority: files that are replaced, and the Iceberg snapshots.
    replaced: Sequence[UUID] = ()
    snapshots: dict[str, int] = field(default_factory=dict)


def take_over() -> None:
    """Increment the fencing token, so that only this process can end stages."""
    Dataset.unscoped.using(ALIAS).update(pipeline_token=F("pipeline_token") + 1)


def datasets_with_work() -> list[UUID]:
    """Return the datasets with uploads that are not in the authority."""
    rows = Dataset.unscoped.using(ALIAS).filter(authority_state__lt=F("last_upload"))
    return list(rows.values_list("pk", flat=True))


def untagged() -> list[UUID]:
    """Return the datasets whose authority has untagged snapshots, after a crash."""
    runs = Run.unscoped.using(ALIAS).filter(stage=Run.Stage.AUTHORITY, tagged=False)
    return list(runs.filter(superseded_at=None).values_list("dataset_id", flat=True))


def find_dataset(dataset_id: UUID) -> PipelineDataset | None:
    """Return the state of a dataset, unless it has been dropped."""
    with transaction.atomic(using=ALIAS):
        row = Dataset.unscoped.using(ALIAS).filter(pk=dataset_id).first()
        if row is None:
            return None
        runs = list(_active_run_rows(dataset_id))
        return PipelineDataset(
            row.pk,
            row.tenant_id,
            row.definition,
            row.pipeline_token,
            _dataset_state(row, runs),
            next((run for run in runs if run.stage == Run.Stage.AUTHORITY), None),
        )


def _dataset_state(row: Dataset, runs: Sequence[Run]) -> DatasetState:
    def active_runs(*stages: Run.Stage) -> list[ActiveRun]:
        return [
            ActiveRun(run.pk, run.first, run.last, run.level, run.bytes, run.first_at)
            for run in runs
            if run.stage in stages
        ]

    return DatasetState(
        sum(run.bytes for run in runs if run.stage == Run.Stage.AUTHORITY),
        active_runs(Run.Stage.SORTED, Run.Stage.MERGED),
        _waiting(row.pk, runs[-1].last if runs else 0),
        timezone.now(),
        bool(read_definition(row.definition)["id_keys"]),
        active_runs(Run.Stage.REMAPPED),
    )


def inputs(dataset_id: UUID, planned: PlannedStep) -> list[StoredFile]:
    """Return the files that a step consumes, in the order of their uploads."""
    files = StoredFile.unscoped.using(ALIAS).filter(dataset_id=dataset_id)
    if planned.step in (PipelineStep.REMAP, PipelineStep.SORT):
        uploads = files.filter(upload__number__range=(planned.first, planned.last))
        return list(uploads.order_by("upload__number", "part_number"))
    return _files_of(
        _active_run_rows(dataset_id).filter(first__gte=planned.first, last__lte=planned.last)
    )


def remapped(dataset_id: UUID, planned: PlannedStep) -> list[StoredFile]:
    """Return the files that remapping the uploads of a step produced."""
    runs = _active_run_rows(dataset_id).filter(stage=Run.Stage.REMAPPED)
    return _files_of(runs.filter(first=planned.first, last=planned.last))


def ids_so_far(dataset_id: UUID, id_key: str) -> list[StoredFile]:
    """Return the files with the ids assigned so far for an ID-key, each key once."""
    authority = [f for f in authority_files(dataset_id) if f.table == id_key and f.view == ""]
    return authority + [f for f in _files_of(_active_run_rows(dataset_id)) if f.table == id_key]


def _files_of(runs: QuerySet[Run]) -> list[StoredFile]:
    files = StoredFile.unscoped.using(ALIAS).filter(run__in=runs)
    return list(files.order_by("run__first"))


def authority_files(dataset_id: UUID) -> list[StoredFile]:
    """Return the files of the current authority."""
    files = StoredFile.unscoped.using(ALIAS).filter(
        dataset_id=dataset_id, stage=FileStage.AUTHORITY, until=None
    )
    return list(files)


def check(dataset: PipelineDataset) -> None:
    """Raise `StepSuperseded` if the authority has changed or another process has taken over."""
    row = Dataset.unscoped.using(ALIAS).filter(pk=dataset.id).first()
    if row is None or row.pipeline_token != dataset.token:
        raise StepSuperseded
    _check_authority(dataset)


def _check_authority(dataset: PipelineDataset) -> Run | None:
    current = _active_run_rows(dataset.id).filter(stage=Run.Stage.AUTHORITY).first()
    expected = dataset.authority
    if (current and current.pk) != (expected and expected.pk):
        raise StepSuperseded
    return current


def end(dataset: PipelineDataset, result: StepResult) -> Run:
    """Record that a step has ended, or raise `StepSuperseded`."""
    planned = result.planned
    with transaction.atomic(using=ALIAS):
        row = Dataset.unscoped.using(ALIAS).select_for_update().filter(pk=dataset.id).first()
        if row is None or row.pipeline_token != dataset.token:
            raise StepSuperseded
        first_at, last_at = _consume(dataset, planned)
        run = _run(dataset, result, first_at, last_at)
        _add_files(run, result)
        if planned.step is PipelineStep.AUTHORITY:
            files = StoredFile.unscoped.using(ALIAS).filter(pk__in=result.replaced)
            files.update(until=run.last, superseded_at=timezone.now())
            row.authority_state = run.last
        row.stored_bytes += sum(file.bytes for file in result.files)
        row.pipeline_error = ""
        row.save(using=ALIAS, update_fields=["authority_state", "stored_bytes", "pipeline_error"])
    return run


def note_tagged(run_id: UUID) -> None:
    Run.unscoped.using(ALIAS).filter(pk=run_id).update(tagged=True)


def note_failure(dataset_id: UUID, text: str) -> None:
    """Record why a dataset is stuck, until a step succeeds."""
    Dataset.unscoped.using(ALIAS).filter(pk=dataset_id).update(pipeline_error=text[:1000])


def count_stuck() -> int:
    """Return how many datasets are stuck."""
    return Dataset.unscoped.using(ALIAS).exclude(pipeline_error="").count()


def _consume(
    dataset: PipelineDataset, planned: PlannedStep
) -> tuple[datetime.datetime, datetime.datetime]:
    """Supersede what a step consumed. Return when its first and last upload were committed."""
    now = timezone.now()
    uploads = Upload.unscoped.using(ALIAS).filter(
        dataset_id=dataset.id, number__range=(planned.first, planned.last)
    )
    times = uploads.aggregate(first=Min("committed_at"), last=Max("committed_at"))
    runs = _active_run_rows(dataset.id)
    if planned.step in (PipelineStep.REMAP, PipelineStep.SORT):
        _consume_uploads(dataset, planned, now)
        return times["first"], times["last"]
    runs = runs.exclude(stage=Run.Stage.REMAPPED)
    consumed = runs.filter(last__lte=planned.last).exclude(stage=Run.Stage.AUTHORITY)
    consumed = consumed.filter(first__gte=planned.first).order_by("first")
    ends = [(run.first, run.last) for run in consumed]
    expected = [
        (r.first, r.last)
        for r in dataset.now.runs
        if planned.first <= r.first and r.last <= planned.last
    ]
    if ends != expected:
        raise StepSuperseded
    ids = [run.pk for run in consumed]
    StoredFile.unscoped.using(ALIAS).filter(run__in=ids).update(superseded_at=now)
    if planned.step is PipelineStep.AUTHORITY:
        authority = _check_authority(dataset)
        ids += [authority.pk] if authority is not None else []
    Run.unscoped.using(ALIAS).filter(pk__in=ids).update(superseded_at=now)
    return times["first"], times["last"]


def _consume_uploads(
    dataset: PipelineDataset, planned: PlannedStep, now: datetime.datetime
) -> None:
    """Supersede what sorting consumes. Remapping consumes nothing: it does not rewrite rows."""
    runs = _active_run_rows(dataset.id)
    remapped_runs = runs.filter(stage=Run.Stage.REMAPPED)
    if planned.step is PipelineStep.SORT and dataset.now.has_ids:
        run = remapped_runs.filter(first=planned.first, last=planned.last).first()
        if run is None:
            raise StepSuperseded
        StoredFile.unscoped.using(ALIAS).filter(run=run).update(superseded_at=now)
        Run.unscoped.using(ALIAS).filter(pk=run.pk).update(superseded_at=now)
    elif runs.filter(last__gte=planned.first).exists():
        raise StepSuperseded
    if planned.step is PipelineStep.SORT:
        files = StoredFile.unscoped.using(ALIAS).filter(
            upload__dataset_id=dataset.id, upload__number__range=(planned.first, planned.last)
        )
        files.update(superseded_at=now)


def _run(
    dataset: PipelineDataset,
    result: StepResult,
    first_at: datetime.datetime,
    last_at: datetime.datetime,
) -> Run:
    planned = result.planned
    is_authority = planned.step is PipelineStep.AUTHORITY
    size = sum(file.bytes for file in result.files)
    # Count a row once, in however many views it is stored.
    count = sum(file.rows for file in result.files if not file.view)
    if planned.step is PipelineStep.REMAP:
        count = _uploaded_rows(dataset, planned)
    if is_authority:
        current = StoredFile.unscoped.using(ALIAS).filter(
            dataset_id=dataset.id, stage=FileStage.AUTHORITY, until=None
        )
        totals = current.exclude(pk__in=result.replaced).aggregate(
            bytes=Sum("bytes"), rows=Sum("rows", filter=Q(view=""))
        )
        size, count = size + (totals["bytes"] or 0), count + (totals["rows"] or 0)
    run = Run(
        id=uuid7(),
        tenant_id=dataset.tenant_id,
        dataset_id=dataset.id,
        stage=_STAGES[planned.step],
        level=planned.level,
        first=1 if is_authority else planned.first,
        last=planned.last,
        rows=count,
        bytes=size,
        first_at=first_at,
        last_at=last_at,
        snapshots=result.snapshots,
    )
    run.save(using=ALIAS)
    return run


def _uploaded_rows(dataset: PipelineDataset, planned: PlannedStep) -> int:
    uploads = Upload.unscoped.using(ALIAS).filter(
        dataset_id=dataset.id, number__range=(planned.first, planned.last)
    )
    return uploads.aggregate(rows=Sum("rows"))["rows"] or 0


def _add_files(run: Run, result: StepResult) -> None:
    is_authority = run.stage == Run.Stage.AUTHORITY
    StoredFile.unscoped.using(ALIAS).bulk_create(
        StoredFile(
            tenant_id=run.tenant_id,
            dataset_id=run.dataset_id,
            stage=run.stage,
            run=None if is_authority else run,
            since=run.last if is_authority else None,
            table=file.table,
            view=file.view,
            id_key=file.id_key,
            path=file.path,
            rows=file.rows,
            bytes=file.bytes,
            lowest=to_text(from_plain(file.lowest)),
            highest=to_text(from_plain(file.highest)),
        )
        for file in result.files
    )


def _active_run_rows(dataset_id: UUID) -> QuerySet[Run]:
    rows = Run.unscoped.using(ALIAS).filter(dataset_id=dataset_id, superseded_at=None)
    return rows.order_by("first")


def _waiting(dataset_id: UUID, after: int) -> list[PendingUpload]:
    uploads = Upload.unscoped.using(ALIAS).filter(dataset_id=dataset_id, number__gt=after)
    rows = uploads.order_by("number").values_list("number", "bytes", "committed_at")
    return [PendingUpload(n or 0, size, at) for n, size, at in rows[:MAX_WAITING] if at is not None]


_STAGES = {
    PipelineStep.REMAP: Run.Stage.REMAPPED,
    PipelineStep.SORT: Run.Stage.SORTED,
    PipelineStep.MERGE: Run.Stage.MERGED,
    PipelineStep.AUTHORITY: Run.Stage.AUTHORITY,
}
