"""One step of a dataset, from its inputs to the transaction that ends it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from uuid import UUID

from analytics.catalogue_lock import catalogue_lock
from analytics.locations import folder_of
from analytics.models import Run, StoredFile
from analytics.pipeline import ledger
from analytics.pipeline.catalogue import Authority, FileReplacement
from analytics.pipeline.decisions import PipelineStep, PlannedStep
from analytics.pipeline.ledger import PipelineDataset, StepResult
from analytics.pipeline.tasks import PipelineTask, TaskResult, WrittenFile, read_result
from analytics.pipeline.workers import Workers
from analytics.rows.keys import Key, from_plain, from_text, to_plain
from analytics.schema import AnalyticsTable, tables_of


@dataclass(frozen=True, slots=True)
class MergeRange:
    """A range of a view's keys, and the authority's file for it."""

    base: StoredFile | None
    low: Key | None
    high: Key | None


def run_step(
    workers: Workers, authority: Authority, dataset: PipelineDataset, planned: PlannedStep
) -> int:
    """Run a step and record its result; raise `StepSuperseded` if another process took it over.

    Return how many rows it processed.
    """
    if planned.step is PipelineStep.AUTHORITY:
        return _enter(workers, authority, dataset, planned)
    files = ledger.inputs(dataset.id, planned)
    if planned.step is PipelineStep.REMAP:
        tasks = _id_tasks(dataset, files)
    elif planned.step is PipelineStep.SORT:
        tasks = _sort_tasks(dataset, files, ledger.remapped(dataset.id, planned))
    else:
        tasks = _tasks_by_table(dataset, "merged", files)
    results = _run(workers, planned, tasks)
    ledger.end(
        dataset, StepResult(planned, [output for result in results for output in result.files])
    )
    return sum(file.rows for file in files if file.table)


def _id_tasks(dataset: PipelineDataset, files: Sequence[StoredFile]) -> list[PipelineTask]:
    """Return the tasks that assign ids to the keys of uploads, one per ID-key, in order."""
    tasks = []
    for name in sorted({file.id_key for file in files if file.id_key}):
        lists = [file.path for file in files if file.id_key == name]
        assigned = ledger.ids_so_far(dataset.id, name)
        task = _task(dataset, "ids", name, lists)
        count = sum(file.rows for file in assigned)
        tasks.append(replace(task, known=[file.path for file in assigned], first_id=count))
    return tasks


def _sort_tasks(
    dataset: PipelineDataset, files: Sequence[StoredFile], remapped: Sequence[StoredFile]
) -> list[PipelineTask]:
    """Return the tasks that sort segments, together with the new keys of ID-keys."""
    segments = [file for file in files if file.table]
    tasks = _tasks_by_table(dataset, "sorted", [*segments, *(f for f in remapped if f.table)])
    ids = {file.id_key: file.path for file in remapped if file.id_key}
    begins = _first_ids([file for file in files if file.id_key])
    tables = tables_of(dataset.definition)
    return [
        replace(
            task,
            ids={name: ids[name] for name in tables[task.table].id_keys if name in ids},
            begins=[
                begins.get((f.upload_id, f.part_number), {})
                for f in segments
                if f.table == task.table
            ],
        )
        if tables[task.table].ids
        else task
        for task in tasks
    ]


def _first_ids(lists: Sequence[StoredFile]) -> dict[tuple[UUID | None, int], dict[str, int]]:
    """Return for each part of an upload, per ID-key, the index of the first id of its keys."""
    next_ids: dict[str, int] = {}
    begins: dict[tuple[UUID | None, int], dict[str, int]] = {}
    for file in lists:
        first_id = next_ids.get(file.id_key, 0)
        begins.setdefault((file.upload_id, file.part_number), {})[file.id_key] = first_id
        next_ids[file.id_key] = first_id + file.rows
    return begins


def _tasks_by_table(
    dataset: PipelineDataset, kind: str, files: Sequence[StoredFile]
) -> list[PipelineTask]:
    return [
        _task(dataset, kind, table, [file.path for file in files if file.table == table])
        for table in sorted({file.table for file in files})
    ]


def _enter(
    workers: Workers, authority: Authority, dataset: PipelineDataset, planned: PlannedStep
) -> int:
    entering = ledger.inputs(dataset.id, planned)
    current = ledger.authority_files(dataset.id)
    tables = tables_of(dataset.definition)
    changes: list[FileReplacement] = []
    added_files: list[WrittenFile] = []
    replaced_files: list[StoredFile] = []
    for name in sorted({file.table for file in entering}):
        table_entering = [file for file in entering if file.table == name]
        table, table_current = tables[name], [file for file in current if file.table == name]
        entries = _enter_table(workers, dataset, planned, table, table_entering, table_current)
        for change, files, old_files in entries:
            changes.append(change)
            added_files += files
            replaced_files += old_files
    before = dataset.authority.snapshots if dataset.authority is not None else {}
    with catalogue_lock(dataset.id):
        ledger.check(dataset)
        snapshots = authority.change(changes, before)
        result = StepResult(planned, added_files, [file.pk for file in replaced_files], snapshots)
        run = ledger.end(dataset, result)
    tag(authority, run)
    return sum(file.rows for file in entering)


def tag(authority: Authority, run: Run) -> None:
    """Tag the snapshots of a committed state."""
    with catalogue_lock(run.dataset_id):
        authority.tag(run.last, run.snapshots)
        ledger.note_tagged(run.pk)


_MergedFiles = tuple[FileReplacement, list[WrittenFile], list[StoredFile]]


def _enter_table(
    workers: Workers,
    dataset: PipelineDataset,
    planned: PlannedStep,
    table: AnalyticsTable,
    entering: Sequence[StoredFile],
    current: Sequence[StoredFile],
) -> list[_MergedFiles]:
    """Merge runs into a table's primary view, and the resulting changes into the others."""
    primary = [file for file in current if file.view == ""]
    paths = [file.path for file in entering]
    span = _span((from_text(f.lowest), from_text(f.highest)) for f in entering)
    ranges = _ranges(primary, *span)
    results = _run(workers, planned, [_range_task(dataset, table, "", paths, r) for r in ranges])
    entries = [_merged_files(table, "", ranges, results)]
    folder = folder_of(dataset.id)
    for view in table.views:
        changes = [
            output for result in results for output in result.changes if output.view == view.name
        ]
        if not changes:
            continue
        view_files = [file for file in current if file.view == view.name]
        view_ranges = _ranges(
            view_files, *_span((from_plain(m.lowest), from_plain(m.highest)) for m in changes)
        )
        paths = [output.path for output in changes]
        tasks = [_range_task(dataset, table, view.name, paths, r) for r in view_ranges]
        entries.append(_merged_files(table, view.name, view_ranges, _run(workers, planned, tasks)))
        for path in paths:
            (folder / path).unlink(missing_ok=True)
    return [entry for entry in entries if entry[1] or entry[2]]


def _merged_files(
    table: AnalyticsTable, view: str, ranges: Sequence[MergeRange], results: Sequence[TaskResult]
) -> _MergedFiles:
    added = [output for result in results for output in result.files]
    replaced = [
        part.base
        for part, result in zip(ranges, results, strict=True)
        if part.base is not None and not result.unchanged
    ]
    change = FileReplacement(
        table, table.view(view), [file.path for file in replaced], [output.path for output in added]
    )
    return change, added, replaced


def _ranges(files: Sequence[StoredFile], lowest: Key, highest: Key) -> list[MergeRange]:
    """Return the ranges that cover keys from `lowest` to `highest`, one per file."""
    if not files:
        return [MergeRange(None, None, None)]
    ordered = sorted(files, key=lambda file: from_text(file.lowest))
    starts: list[Key | None] = [None, *(from_text(f.lowest) for f in ordered[1:]), None]
    ranges = [
        MergeRange(file, low, high)
        for file, (low, high) in zip(ordered, pairwise(starts), strict=True)
    ]
    return [
        part
        for part in ranges
        if (part.high is None or lowest < part.high) and (part.low is None or highest >= part.low)
    ]


def _span(bounds: Iterable[tuple[Key, Key]]) -> tuple[Key, Key]:
    lows, highs = zip(*bounds, strict=True)
    return min(lows), max(highs)


def _range_task(
    dataset: PipelineDataset, table: AnalyticsTable, view: str, paths: list[str], part: MergeRange
) -> PipelineTask:
    return PipelineTask(
        kind="authority_view" if view else "authority",
        folder=str(folder_of(dataset.id)),
        definition=dataset.definition,
        table=table.name,
        inputs=paths,
        view=view,
        base=None if part.base is None else part.base.path,
        low=None if part.low is None else to_plain(part.low),
        high=None if part.high is None else to_plain(part.high),
    )


def _task(dataset: PipelineDataset, kind: str, table: str, paths: list[str]) -> PipelineTask:
    return PipelineTask(kind, str(folder_of(dataset.id)), dataset.definition, table, paths)


def _run(workers: Workers, planned: PlannedStep, tasks: Sequence[PipelineTask]) -> list[TaskResult]:
    if not tasks:
        return []
    results = workers.run(planned.step.value, [task.to_json() for task in tasks])
    return [read_result(result) for result in results]
