"""One step of a dataset, from its inputs to the transaction that ends it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from uuid import UUID

from analytics.catalogue_lock import catalogue_lock
from analytics.models import Run, StoredFile
from analytics.pipeline import ledger
from analytics.pipeline.catalogue import Authority, FileReplacement
from analytics.pipeline.decisions import PipelineStep, PlannedStep
from analytics.pipeline.ledger import PipelineDataset, StepResult
from analytics.pipeline.tasks import PipelineTask, TaskResult, WrittenFile, read_done
from analytics.pipeline.workers import Workers
from analytics.places import folder_of
from analytics.rows.keys import Key, from_plain, from_text, to_plain
from analytics.schema import AnalyticsTable, tables_of


@dataclass(frozen=True, slots=True)
class MergeRange:
    """A range of a view's keys, and the authority's file for it."""

    base: StoredFile | None
    low: Key | None
    high: Key | None


def run_step(
    workers: Workers, authority: Authority, standing: PipelineDataset, wanted: PlannedStep
) -> int:
    """Run a step and record its result; raise `StepSuperseded` if another process took it over.

    Return how many rows it processed.
    """
    if wanted.step is PipelineStep.AUTHORITY:
        return _enter(workers, authority, standing, wanted)
    files = ledger.inputs(standing.id, wanted)
    if wanted.step is PipelineStep.REMAP:
        tasks = _id_tasks(standing, files)
    elif wanted.step is PipelineStep.SORT:
        tasks = _sort_tasks(standing, files, ledger.remapped(standing.id, wanted))
    else:
        tasks = _tasks_by_table(standing, "merged", files)
    done = _run(workers, wanted, tasks)
    ledger.end(standing, StepResult(wanted, [made for one in done for made in one.files]))
    return sum(file.rows for file in files if file.table)


def _id_tasks(standing: PipelineDataset, files: Sequence[StoredFile]) -> list[PipelineTask]:
    """Return the tasks that assign ids to the keys of uploads, one per ID-key, in order."""
    tasks = []
    for name in sorted({file.id_key for file in files if file.id_key}):
        lists = [file.path for file in files if file.id_key == name]
        known = ledger.ids_so_far(standing.id, name)
        task = _task(standing, "ids", name, lists)
        count = sum(file.rows for file in known)
        tasks.append(replace(task, known=[file.path for file in known], first_id=count))
    return tasks


def _sort_tasks(
    standing: PipelineDataset, files: Sequence[StoredFile], remapped: Sequence[StoredFile]
) -> list[PipelineTask]:
    """Return the tasks that sort segments, together with the new keys of ID-keys."""
    segments = [file for file in files if file.table]
    tasks = _tasks_by_table(standing, "sorted", [*segments, *(f for f in remapped if f.table)])
    ids = {file.id_key: file.path for file in remapped if file.id_key}
    begins = _begins([file for file in files if file.id_key])
    tables = tables_of(standing.definition)
    return [
        replace(
            task,
            ids={name: ids[name] for name in tables[task.table].id_keys if name in ids},
            begins=[
                begins.get((f.upload_id, f.place), {}) for f in segments if f.table == task.table
            ],
        )
        if tables[task.table].ids
        else task
        for task in tasks
    ]


def _begins(lists: Sequence[StoredFile]) -> dict[tuple[UUID | None, int], dict[str, int]]:
    """Return for each part of an upload, per ID-key, where the ids of its keys begin."""
    reached: dict[str, int] = {}
    begins: dict[tuple[UUID | None, int], dict[str, int]] = {}
    for file in lists:
        begin = reached.get(file.id_key, 0)
        begins.setdefault((file.upload_id, file.place), {})[file.id_key] = begin
        reached[file.id_key] = begin + file.rows
    return begins


def _tasks_by_table(
    standing: PipelineDataset, kind: str, files: Sequence[StoredFile]
) -> list[PipelineTask]:
    return [
        _task(standing, kind, table, [file.path for file in files if file.table == table])
        for table in sorted({file.table for file in files})
    ]


def _enter(
    workers: Workers, authority: Authority, standing: PipelineDataset, wanted: PlannedStep
) -> int:
    entering = ledger.inputs(standing.id, wanted)
    present = ledger.authority_files(standing.id)
    tables = tables_of(standing.definition)
    changes: list[FileReplacement] = []
    added: list[WrittenFile] = []
    replaced: list[StoredFile] = []
    for name in sorted({file.table for file in entering}):
        mine = [file for file in entering if file.table == name]
        table, held = tables[name], [file for file in present if file.table == name]
        entries = _enter_table(workers, standing, wanted, table, mine, held)
        for change, made, superseded in entries:
            changes.append(change)
            added += made
            replaced += superseded
    before = standing.authority.snapshots if standing.authority is not None else {}
    with catalogue_lock(standing.id):
        ledger.check(standing)
        snapshots = authority.change(changes, before)
        ended = StepResult(wanted, added, [file.pk for file in replaced], snapshots)
        run = ledger.end(standing, ended)
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
    standing: PipelineDataset,
    wanted: PlannedStep,
    table: AnalyticsTable,
    entering: Sequence[StoredFile],
    held: Sequence[StoredFile],
) -> list[_MergedFiles]:
    """Merge runs into a table's primary view, and the resulting changes into the others."""
    primary = [file for file in held if file.view == ""]
    paths = [file.path for file in entering]
    span = _span((from_text(f.lowest), from_text(f.highest)) for f in entering)
    ranges = _ranges(primary, *span)
    done = _run(workers, wanted, [_range_task(standing, table, "", paths, r) for r in ranges])
    entries = [_merged_files(table, "", ranges, done)]
    folder = folder_of(standing.id)
    for view in table.views:
        changes = [made for one in done for made in one.changes if made.view == view.name]
        if not changes:
            continue
        mine = [file for file in held if file.view == view.name]
        ranges_here = _ranges(
            mine, *_span((from_plain(m.lowest), from_plain(m.highest)) for m in changes)
        )
        paths = [made.path for made in changes]
        tasks = [_range_task(standing, table, view.name, paths, r) for r in ranges_here]
        entries.append(_merged_files(table, view.name, ranges_here, _run(workers, wanted, tasks)))
        for path in paths:
            (folder / path).unlink(missing_ok=True)
    return [entered for entered in entries if entered[1] or entered[2]]


def _merged_files(
    table: AnalyticsTable, view: str, ranges: Sequence[MergeRange], done: Sequence[TaskResult]
) -> _MergedFiles:
    added = [made for one in done for made in one.files]
    replaced = [
        part.base
        for part, one in zip(ranges, done, strict=True)
        if part.base is not None and not one.unchanged
    ]
    change = FileReplacement(
        table, table.view(view), [file.path for file in replaced], [made.path for made in added]
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
    standing: PipelineDataset, table: AnalyticsTable, view: str, paths: list[str], part: MergeRange
) -> PipelineTask:
    return PipelineTask(
        kind="authority_view" if view else "authority",
        folder=str(folder_of(standing.id)),
        definition=standing.definition,
        table=table.name,
        inputs=paths,
        view=view,
        base=None if part.base is None else part.base.path,
        low=None if part.low is None else to_plain(part.low),
        high=None if part.high is None else to_plain(part.high),
    )


def _task(standing: PipelineDataset, kind: str, table: str, paths: list[str]) -> PipelineTask:
    return PipelineTask(kind, str(folder_of(standing.id)), standing.definition, table, paths)


def _run(workers: Workers, wanted: PlannedStep, tasks: Sequence[PipelineTask]) -> list[TaskResult]:
    if not tasks:
        return []
    answers = workers.run(wanted.step.value, [task.to_json() for task in tasks])
    return [read_done(answer) for answer in answers]
