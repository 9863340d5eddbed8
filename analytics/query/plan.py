"""Chooses the state that a query sees, and the files that represent it.

Every upload number is a state: the result of that upload and all before it. The files that
represent a state are contiguous: the authority up to some upload, then runs, then the segments of
single uploads. Merged runs are kept for the retention period, so a state that was queried can be
queried again.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from typing import TypeAlias
from uuid import UUID

from django.db.models import Max, Q
from django.utils import timezone

from analytics.facts import DatasetFacts
from analytics.models import Dataset, Run, StoredFile, Upload
from analytics.query.files import IdPlan, Part, QueryFile, ReadPlan, StateSelector
from analytics.rows.keys import from_text
from foundation.errors import FieldProblem, InvalidBody, StateExpired

_Segments: TypeAlias = list[tuple[Part, StoredFile]]


def plan(dataset: DatasetFacts, table: str, selector: StateSelector) -> ReadPlan:
    """Choose a state and a table's files. Runs within a transaction of the tenant."""
    return plan_tables(dataset, [table], selector)[table]


def plan_tables(
    dataset: DatasetFacts, tables: Iterable[str], selector: StateSelector
) -> dict[str, ReadPlan]:
    """Choose one state, and the files of several tables at it."""
    row = Dataset.objects.get(pk=dataset.id)
    # A remapped run cannot be read until its uploads are sorted.
    runs_in_force = Run.objects.filter(dataset=row).exclude(stage=Run.Stage.REMAPPED)
    runs = list(runs_in_force.order_by("first", "last"))
    # One time for choosing and reporting, so the reported age never exceeds the requested one.
    now = timezone.now()
    state = _state(row, runs, selector, now)
    runs_read, covered = covering_runs(runs, state)
    segments = _segments(dataset, covered, state)
    age = _age(row, state, now)
    return {
        table: ReadPlan(state, age, *_table_files(dataset, table, runs_read, segments))
        for table in tables
    }


def _table_files(
    dataset: DatasetFacts, table: str, runs_read: list[Run], segments: _Segments
) -> tuple[list[QueryFile], list[QueryFile], dict[str, IdPlan]]:
    authority, later = _sorted_files(dataset, table, runs_read)
    later += [_file(dataset, file, part) for part, file in segments if file.table == table]
    id_keys = {
        name: _id_plan(dataset, name, runs_read, segments) for name in dataset.tables[table].id_keys
    }
    return authority, later, id_keys


def _id_plan(dataset: DatasetFacts, name: str, runs_read: list[Run], segments: _Segments) -> IdPlan:
    lists = [_file(dataset, file, part) for part, file in segments if file.id_key == name]
    return IdPlan(*_sorted_files(dataset, name, runs_read), lists)


def _sorted_files(
    dataset: DatasetFacts, table: str, runs_read: Sequence[Run]
) -> tuple[list[QueryFile], list[QueryFile]]:
    """Return a table's files of the authority, and those of the later runs in order."""
    if not _begins_with(runs_read):
        return [], _run_files(dataset, table, runs_read)
    return _authority_files(dataset, table, runs_read[0]), _run_files(dataset, table, runs_read[1:])


def covering_runs(runs: Iterable[Run], state: int) -> tuple[list[Run], int]:
    """Return contiguous runs from the first upload on, and the last upload they cover.

    Runs are merged from contiguous runs, so at each upload the longest run that fits covers as much
    as any sequence of shorter ones.
    """
    by_first: dict[int, list[Run]] = {}
    for run in runs:
        if run.last <= state:
            by_first.setdefault(run.first, []).append(run)
    runs_read: list[Run] = []
    covered = 0
    while candidates := by_first.get(covered + 1):
        longest = max(candidates, key=lambda run: (run.last, run.stage == Run.Stage.AUTHORITY))
        runs_read.append(longest)
        covered = longest.last
    return runs_read, covered


def _begins_with(runs_read: Sequence[Run]) -> bool:
    return bool(runs_read) and runs_read[0].stage == Run.Stage.AUTHORITY


def _state(
    row: Dataset, runs: Sequence[Run], selector: StateSelector, now: datetime.datetime
) -> int:
    if max(selector.state or 0, selector.since) > row.last_upload:
        detail = f"The newest state is {row.last_upload}."
        raise InvalidBody(detail, errors=[FieldProblem("/state", "invalid", detail)])
    if selector.state is not None:
        return selector.state
    if selector.as_of is not None:
        return _committed_by(row, selector.as_of)
    minimum = selector.since
    if not selector.any:
        oldest = now - datetime.timedelta(seconds=selector.freshness_s or 0)
        # A commit that is concurrent with this query may be missing: it was not acknowledged yet.
        newest = row.last_upload if not selector.freshness_s else _committed_by(row, oldest)
        minimum = max(minimum, newest)
    return _cheapest(runs, minimum)


def _committed_by(row: Dataset, moment: datetime.datetime) -> int:
    if row.last_upload_at is not None and row.last_upload_at <= moment:
        return row.last_upload
    uploads = Upload.objects.filter(dataset=row, committed_at__lte=moment)
    return uploads.aggregate(newest=Max("number"))["newest"] or 0


def _cheapest(runs: Sequence[Run], minimum: int) -> int:
    """Return the cheapest state to read that is not older than `needed`."""
    state = 0
    for run in runs:
        if run.superseded_at is not None:
            continue
        enough = state >= minimum and run.stage != Run.Stage.AUTHORITY
        if enough or run.first != state + 1:
            break
        state = run.last
    return max(state, minimum)


def _authority_files(dataset: DatasetFacts, table: str, run: Run) -> list[QueryFile]:
    files = StoredFile.objects.filter(
        Q(until=None) | Q(until__gt=run.last),
        dataset_id=dataset.id,
        stage=Run.Stage.AUTHORITY,
        table=table,
        since__lte=run.last,
    )
    return [_file(dataset, file) for file in files]


def _run_files(dataset: DatasetFacts, table: str, runs: Sequence[Run]) -> list[QueryFile]:
    order: dict[UUID | None, int] = {run.pk: index for index, run in enumerate(runs)}
    files = StoredFile.objects.filter(run__in=list(order), table=table)
    ordered = sorted(files, key=lambda file: (order[file.run_id], file.pk))
    return [_file(dataset, file) for file in ordered]


def _segments(dataset: DatasetFacts, covered: int, state: int) -> _Segments:
    """Return the unsorted files of uploads, in order of arrival."""
    if covered == state:
        return []
    uploads = Upload.objects.filter(dataset_id=dataset.id, number__gt=covered, number__lte=state)
    committed = list(uploads.values_list("pk", "number", "rows"))
    numbers: dict[UUID | None, int] = {pk: number or 0 for pk, number, _ in committed}
    files = list(StoredFile.objects.filter(upload__in=list(numbers)))
    with_files = {file.upload_id for file in files}
    if len(committed) < state - covered or any(
        rows and pk not in with_files for pk, _, rows in committed
    ):
        raise StateExpired(f"The files of state {state} are no longer retained.")
    segments = [((numbers[file.upload_id], file.part_number), file) for file in files]
    return sorted(segments, key=lambda pair: pair[0])


def _file(dataset: DatasetFacts, file: StoredFile, part: Part | None = None) -> QueryFile:
    return QueryFile(
        path=dataset.folder / file.path,
        stage=file.stage,
        view=file.view,
        rows=file.rows,
        lowest=from_text(file.lowest) if file.lowest else (),
        highest=from_text(file.highest) if file.highest else (),
        part=part,
    )


def _age(row: Dataset, state: int, now: datetime.datetime) -> float:
    """Return the age of a state: the time since the next upload was committed."""
    if state >= row.last_upload:
        return 0.0
    next_upload = Upload.objects.filter(dataset=row, number=state + 1).first()
    if next_upload is None or next_upload.committed_at is None:
        return 0.0
    return max((now - next_upload.committed_at).total_seconds(), 0.0)
