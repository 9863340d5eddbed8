"""PostgreSQL's record of datasets' files, and the transaction that ends a stage.

It is a compare-and-set: under the lock of the dataset's row, the token must be the current one and
the stage's inputs must still be in force. Otherwise nothing is changed, and the output files of the
stage remain unreferenced.
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
#: Maximum number of waiting uploads read at once. More than these are several batches anyway.
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

    wanted: PlannedStep
    files: Sequence[WrittenFile]
    #: For the authority: files that are replaced, and the Iceberg snapshots.
    replaced: Sequence[UUID] = ()
    snapshots: dict[str, int] = field(default_factory=dict)


def take_over() -> None:
    """Increment the fencing token, so that only this process can end stages."""
    Dataset.unscoped.using(ALIAS).update(pipeline_token=F("pipeline_token") + 1)


def with_work() -> list[UUID]:
    """Return the datasets with uploads that are not in the authority."""
    rows = Dataset.unscoped.using(ALIAS).filter(authority_state__lt=F("last_upload"))
    return list(rows.values_list("pk", flat=True))


def untagged() -> list[UUID]:
    """Return the datasets whose authority has untagged snapshots, after a crash."""
    runs = Run.unscoped.using(ALIAS).filter(stage=Run.Stage.AUTHORITY, tagged=False)
    return list(runs.filter(superseded_at=None).values_list("dataset_id", flat=True))


def standing(dataset_id: UUID) -> PipelineDataset | None:
    """Return the state of a dataset, unless it has been dropped."""
    with transaction.atomic(using=ALIAS):
        row = Dataset.unscoped.using(ALIAS).filter(pk=dataset_id).first()
        if row is None:
            return None
        runs = list(_in_force(dataset_id))
        return PipelineDataset(
            row.pk,
            row.tenant_id,
            row.definition,
            row.pipeline_token,
            _now(row, runs),
            next((run for run in runs if run.stage == Run.Stage.AUTHORITY), None),
        )


def _now(row: Dataset, runs: Sequence[Run]) -> DatasetState:
    def known(*stages: Run.Stage) -> list[ActiveRun]:
        return [
            ActiveRun(run.pk, run.first, run.last, run.level, run.bytes, run.first_at)
            for run in runs
            if run.stage in stages
        ]

    return DatasetState(
        sum(run.bytes for run in runs if run.stage == Run.Stage.AUTHORITY),
        known(Run.Stage.SORTED, Run.Stage.MERGED),
        _waiting(row.pk, runs[-1].last if runs else 0),
        timezone.now(),
        bool(read_definition(row.definition)["id_keys"]),
        known(Run.Stage.REMAPPED),
    )


def inputs(dataset_id: UUID, wanted: PlannedStep) -> list[StoredFile]:
    """Return the files that a step consumes, in the order of their uploads."""
    files = StoredFile.unscoped.using(ALIAS).filter(dataset_id=dataset_id)
    if wanted.step in (PipelineStep.REMAP, PipelineStep.SORT):
        uploads = files.filter(upload__number__range=(wanted.first, wanted.last))
        return list(uploads.order_by("upload__number", "place"))
    return _files_of(_in_force(dataset_id).filter(first__gte=wanted.first, last__lte=wanted.last))


def remapped(dataset_id: UUID, wanted: PlannedStep) -> list[StoredFile]:
    """Return the files that remapping the uploads of a step produced."""
    runs = _in_force(dataset_id).filter(stage=Run.Stage.REMAPPED)
    return _files_of(runs.filter(first=wanted.first, last=wanted.last))


def ids_so_far(dataset_id: UUID, id_key: str) -> list[StoredFile]:
    """Return the files with the ids of an ID-key, each key once."""
    authority = [f for f in authority_files(dataset_id) if f.table == id_key and f.view == ""]
    return authority + [f for f in _files_of(_in_force(dataset_id)) if f.table == id_key]


def _files_of(runs: QuerySet[Run]) -> list[StoredFile]:
    files = StoredFile.unscoped.using(ALIAS).filter(run__in=runs)
    return list(files.order_by("run__first"))


def authority_files(dataset_id: UUID) -> list[StoredFile]:
    """Return the files of the current authority."""
    files = StoredFile.unscoped.using(ALIAS).filter(
        dataset_id=dataset_id, stage=FileStage.AUTHORITY, until=None
    )
    return list(files)


def check(standing_: PipelineDataset) -> None:
    """Raise `StepSuperseded` if the authority has changed or another process has taken over."""
    row = Dataset.unscoped.using(ALIAS).filter(pk=standing_.id).first()
    if row is None or row.pipeline_token != standing_.token:
        raise StepSuperseded
    _check_authority(standing_)


def _check_authority(standing_: PipelineDataset) -> Run | None:
    present = _in_force(standing_.id).filter(stage=Run.Stage.AUTHORITY).first()
    expected = standing_.authority
    if (present and present.pk) != (expected and expected.pk):
        raise StepSuperseded
    return present


def end(standing_: PipelineDataset, ended: StepResult) -> Run:
    """Record that a step has ended, or raise `StepSuperseded`."""
    wanted = ended.wanted
    with transaction.atomic(using=ALIAS):
        row = Dataset.unscoped.using(ALIAS).select_for_update().filter(pk=standing_.id).first()
        if row is None or row.pipeline_token != standing_.token:
            raise StepSuperseded
        first_at, last_at = _consume(standing_, wanted)
        run = _run(standing_, ended, first_at, last_at)
        _add_files(run, ended)
        if wanted.step is PipelineStep.AUTHORITY:
            files = StoredFile.unscoped.using(ALIAS).filter(pk__in=ended.replaced)
            files.update(until=run.last, superseded_at=timezone.now())
            row.authority_state = run.last
        row.stored_bytes += sum(file.bytes for file in ended.files)
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
    standing_: PipelineDataset, wanted: PlannedStep
) -> tuple[datetime.datetime, datetime.datetime]:
    """Supersede what a step consumed. Return when its first and last upload were committed."""
    now = timezone.now()
    uploads = Upload.unscoped.using(ALIAS).filter(
        dataset_id=standing_.id, number__range=(wanted.first, wanted.last)
    )
    times = uploads.aggregate(first=Min("committed_at"), last=Max("committed_at"))
    runs = _in_force(standing_.id)
    if wanted.step in (PipelineStep.REMAP, PipelineStep.SORT):
        _consume_uploads(standing_, wanted, now)
        return times["first"], times["last"]
    runs = runs.exclude(stage=Run.Stage.REMAPPED)
    taken = runs.filter(last__lte=wanted.last).exclude(stage=Run.Stage.AUTHORITY)
    taken = taken.filter(first__gte=wanted.first).order_by("first")
    ends = [(run.first, run.last) for run in taken]
    known = [
        (r.first, r.last)
        for r in standing_.now.runs
        if wanted.first <= r.first and r.last <= wanted.last
    ]
    if ends != known:
        raise StepSuperseded
    ids = [run.pk for run in taken]
    StoredFile.unscoped.using(ALIAS).filter(run__in=ids).update(superseded_at=now)
    if wanted.step is PipelineStep.AUTHORITY:
        before = _check_authority(standing_)
        ids += [before.pk] if before is not None else []
    Run.unscoped.using(ALIAS).filter(pk__in=ids).update(superseded_at=now)
    return times["first"], times["last"]


def _consume_uploads(
    standing_: PipelineDataset, wanted: PlannedStep, now: datetime.datetime
) -> None:
    """Supersede what sorting consumes. Remapping consumes nothing: rows stay where they are."""
    runs = _in_force(standing_.id)
    remapped_ = runs.filter(stage=Run.Stage.REMAPPED)
    if wanted.step is PipelineStep.SORT and standing_.now.has_ids:
        mine = remapped_.filter(first=wanted.first, last=wanted.last).first()
        if mine is None:
            raise StepSuperseded
        StoredFile.unscoped.using(ALIAS).filter(run=mine).update(superseded_at=now)
        Run.unscoped.using(ALIAS).filter(pk=mine.pk).update(superseded_at=now)
    elif runs.filter(last__gte=wanted.first).exists():
        raise StepSuperseded
    if wanted.step is PipelineStep.SORT:
        files = StoredFile.unscoped.using(ALIAS).filter(
            upload__dataset_id=standing_.id, upload__number__range=(wanted.first, wanted.last)
        )
        files.update(superseded_at=now)


def _run(
    standing_: PipelineDataset,
    ended: StepResult,
    first_at: datetime.datetime,
    last_at: datetime.datetime,
) -> Run:
    wanted = ended.wanted
    is_authority = wanted.step is PipelineStep.AUTHORITY
    size = sum(file.bytes for file in ended.files)
    # Count a row once, in however many views it is stored.
    count = sum(file.rows for file in ended.files if not file.view)
    if wanted.step is PipelineStep.REMAP:
        count = _uploaded_rows(standing_, wanted)
    if is_authority:
        kept = StoredFile.unscoped.using(ALIAS).filter(
            dataset_id=standing_.id, stage=FileStage.AUTHORITY, until=None
        )
        totals = kept.exclude(pk__in=ended.replaced).aggregate(
            bytes=Sum("bytes"), rows=Sum("rows", filter=Q(view=""))
        )
        size, count = size + (totals["bytes"] or 0), count + (totals["rows"] or 0)
    run = Run(
        id=uuid7(),
        tenant_id=standing_.tenant_id,
        dataset_id=standing_.id,
        stage=_STAGES[wanted.step],
        level=wanted.level,
        first=1 if is_authority else wanted.first,
        last=wanted.last,
        rows=count,
        bytes=size,
        first_at=first_at,
        last_at=last_at,
        snapshots=ended.snapshots,
    )
    run.save(using=ALIAS)
    return run


def _uploaded_rows(standing_: PipelineDataset, wanted: PlannedStep) -> int:
    uploads = Upload.unscoped.using(ALIAS).filter(
        dataset_id=standing_.id, number__range=(wanted.first, wanted.last)
    )
    return uploads.aggregate(rows=Sum("rows"))["rows"] or 0


def _add_files(run: Run, ended: StepResult) -> None:
    is_authority = run.stage == Run.Stage.AUTHORITY
    StoredFile.unscoped.using(ALIAS).bulk_create(
        StoredFile(
            tenant_id=run.tenant_id,
            dataset_id=run.dataset_id,
            stage=run.stage,
            run=None if is_authority else run,
            since=run.last if is_authority else None,
            table=made.table,
            view=made.view,
            id_key=made.id_key,
            path=made.path,
            rows=made.rows,
            bytes=made.bytes,
            lowest=to_text(from_plain(made.lowest)),
            highest=to_text(from_plain(made.highest)),
        )
        for made in ended.files
    )


def _in_force(dataset_id: UUID) -> QuerySet[Run]:
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
