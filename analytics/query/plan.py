"""Chooses the state that a query sees, and the files that represent it.

Every upload number is a state: the result of that upload and all before it. The files that
represent a state are contiguous: the authority up to some upload, then runs, then the segments of
single uploads. A run that was merged into another is kept for a while, so a state that was queried
once can be queried again.
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


def plan(dataset: DatasetFacts, table: str, wanted: StateSelector) -> ReadPlan:
    """Choose a state and its files. Runs within a transaction of the tenant."""
    row = Dataset.objects.get(pk=dataset.id)
    # A remapped run cannot be read until its uploads are sorted.
    runs_in_force = Run.objects.filter(dataset=row).exclude(stage=Run.Stage.REMAPPED)
    runs = list(runs_in_force.order_by("first", "last"))
    # The same time for all: an answer is never reported older than it was allowed to be.
    now = timezone.now()
    state = _state(row, runs, wanted, now)
    tiles, covered = tiled(runs, state)
    segments = _segments(dataset, covered, state)
    authority, later = _sorted(dataset, table, tiles)
    later += [_file(dataset, file, part) for part, file in segments if file.table == table]
    id_keys = {
        name: _id_plan(dataset, name, tiles, segments) for name in dataset.tables[table].id_keys
    }
    return ReadPlan(state, _age(row, state, now), authority, later, id_keys)


def _id_plan(dataset: DatasetFacts, name: str, tiles: list[Run], segments: _Segments) -> IdPlan:
    lists = [_file(dataset, file, part) for part, file in segments if file.id_key == name]
    return IdPlan(*_sorted(dataset, name, tiles), lists)


def _sorted(
    dataset: DatasetFacts, table: str, tiles: Sequence[Run]
) -> tuple[list[QueryFile], list[QueryFile]]:
    """Return a table's files of the authority, and those of the runs behind it in order."""
    if not _begins_with(tiles):
        return [], _run_files(dataset, table, tiles)
    return _authority_files(dataset, table, tiles[0]), _run_files(dataset, table, tiles[1:])


def tiled(runs: Iterable[Run], state: int) -> tuple[list[Run], int]:
    """Return contiguous runs from the first upload on, and the last upload they cover.

    Runs are made of runs, so of those that begin at the same upload the longest that fits is as
    good as any sequence of shorter ones.
    """
    by_first: dict[int, list[Run]] = {}
    for run in runs:
        if run.last <= state:
            by_first.setdefault(run.first, []).append(run)
    tiles: list[Run] = []
    covered = 0
    while fitting := by_first.get(covered + 1):
        longest = max(fitting, key=lambda run: (run.last, run.stage == Run.Stage.AUTHORITY))
        tiles.append(longest)
        covered = longest.last
    return tiles, covered


def _begins_with(tiles: Sequence[Run]) -> bool:
    return bool(tiles) and tiles[0].stage == Run.Stage.AUTHORITY


def _state(row: Dataset, runs: Sequence[Run], wanted: StateSelector, now: datetime.datetime) -> int:
    if max(wanted.state or 0, wanted.since) > row.last_upload:
        detail = f"The newest state is {row.last_upload}."
        raise InvalidBody(detail, errors=[FieldProblem("/state", "invalid", detail)])
    if wanted.state is not None:
        return wanted.state
    if wanted.as_of is not None:
        return _committed_by(row, wanted.as_of)
    needed = wanted.since
    if not wanted.any:
        oldest = now - datetime.timedelta(seconds=wanted.freshness_s or 0)
        # Commits made while this query starts have not been acknowledged yet.
        newest = row.last_upload if not wanted.freshness_s else _committed_by(row, oldest)
        needed = max(needed, newest)
    return _cheapest(runs, needed)


def _committed_by(row: Dataset, moment: datetime.datetime) -> int:
    if row.last_upload_at is not None and row.last_upload_at <= moment:
        return row.last_upload
    uploads = Upload.objects.filter(dataset=row, committed_at__lte=moment)
    return uploads.aggregate(newest=Max("number"))["newest"] or 0


def _cheapest(runs: Sequence[Run], needed: int) -> int:
    """Return the cheapest state to read that is not older than `needed`."""
    reached = 0
    for run in runs:
        if run.superseded_at is not None:
            continue
        enough = reached >= needed and run.stage != Run.Stage.AUTHORITY
        if enough or run.first != reached + 1:
            break
        reached = run.last
    return max(reached, needed)


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
    order: dict[UUID | None, int] = {run.pk: place for place, run in enumerate(runs)}
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
    left = {file.upload_id for file in files}
    if len(committed) < state - covered or any(
        rows and pk not in left for pk, _, rows in committed
    ):
        raise StateExpired(f"The files of state {state} are no longer retained.")
    numbered = [((numbers[file.upload_id], file.place), file) for file in files]
    return sorted(numbered, key=lambda pair: pair[0])


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
    following = Upload.objects.filter(dataset=row, number=state + 1).first()
    if following is None or following.committed_at is None:
        return 0.0
    return max((now - following.committed_at).total_seconds(), 0.0)
