"""The tasks of the pipeline: they read immutable files and write new ones.

A task's input and output are JSON, so it can run in a Spark worker or in a thread. It uses neither
Django nor PostgreSQL. Its output files have unique names, and are unreferenced until they are
recorded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from analytics.pipeline.blocks import blocks
from analytics.pipeline.changes import ChangeWriter
from analytics.query import scan_task
from analytics.rows.durable import durable_file
from analytics.rows.file_store import StoredPath, open_file, relative_path, size_of, stored_path
from analytics.rows.ids import IdLookup, assign, read_ids, read_keys, with_final_ids, write_ids
from analytics.rows.keys import Key, Plain, from_plain, to_plain
from analytics.rows.latest_operation import latest, live_rows
from analytics.rows.segment import read_segment, with_columns, with_mask, write_segment
from analytics.rows.sorted_file import SortedFile, SortedFileInfo, write_sorted
from analytics.schema import AnalyticsTable, TableView, tables_of
from analytics.table_definitions import ID, KEY

#: Maximum bytes sorted in memory at once.
CHUNK_BYTES = 256 * 1024 * 1024
#: Uncompressed size of a file of the authority.
FILE_BYTES = 192 * 1024 * 1024
_IDS_AT_ONCE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class PipelineTask:
    """One task. Paths are relative to the dataset's folder."""

    kind: str
    folder: str
    definition: str
    table: str
    #: In the order of their uploads.
    inputs: list[str]
    #: For the authority: the view, its file for the range, and the range of keys.
    view: str = ""
    base: str | None = None
    low: Plain | None = None
    high: Plain | None = None
    #: For an ID-key: the files with assigned ids, and the first unassigned id.
    known: list[str] = field(default_factory=list)
    first_id: int = 0
    #: For segments with temporary ids: the file of ids for each ID-key, and the index of each
    #: segment's first id in it.
    ids: dict[str, str] = field(default_factory=dict)
    begins: list[dict[str, int]] = field(default_factory=list)

    def to_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that a task wrote."""

    table: str
    view: str
    path: str
    rows: int
    bytes: int
    lowest: Plain
    highest: Plain
    #: For a file of ids, which belongs to no table.
    id_key: str = ""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The output of a task."""

    files: list[WrittenFile] = field(default_factory=list)
    #: For a range of the authority: the changes to merge into each other view.
    changes: list[WrittenFile] = field(default_factory=list)
    #: Whether nothing had to be written, because nothing in the range has changed.
    unchanged: bool = False


def run_task(text: str) -> str:
    """Run a task. Called by workers."""
    members = json.loads(text)
    if members["kind"] == scan_task.KIND:
        return json.dumps(scan_task.run_task(members))
    task = PipelineTask(**members)
    return json.dumps(asdict(_KINDS[task.kind](task)))


def read_result(text: str) -> TaskResult:
    """Parse a worker's result."""
    members = json.loads(text)
    files, changes = (
        [WrittenFile(**file) for file in members[name]] for name in ("files", "changes")
    )
    return TaskResult(files, changes, members["unchanged"])


def _assign_ids(task: PipelineTask) -> TaskResult:
    """Assign ids to the listed keys that have none."""
    table, folder = _table(task), stored_path(task.folder)
    keys = read_keys([folder / path for path in task.inputs], table.columns[KEY])
    assignment = assign(keys, IdLookup(_ids_in(table, folder, task.known)), task.first_id)
    ids = _ids_path(folder)
    with durable_file(ids) as file:
        write_ids(file, assignment.ids)
    files = [_arrow_file(task, ids, len(assignment.ids), table="", id_key=task.table)]
    if len(assignment.new_keys):
        rows, path = assignment.operations(table), _ids_path(folder)
        with durable_file(path) as file:
            write_segment(file, table, rows)
        files.append(_arrow_file(task, path, rows.num_rows, table=task.table))
    return TaskResult(files)


def _ids_path(folder: StoredPath) -> StoredPath:
    return folder / "remapped" / f"{uuid4().hex}.arrow"


def _ids_in(table: AnalyticsTable, folder: StoredPath, paths: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the keys and ids of files, in batches."""
    for path in paths:
        if path.endswith(".arrow"):
            yield read_segment(folder / path, table, [KEY, ID])
            continue
        with open_file(folder / path) as source, pq.ParquetFile(source) as file:
            for batch in file.iter_batches(_IDS_AT_ONCE, columns=[KEY, ID]):
                yield pa.Table.from_batches([batch])


def _arrow_file(
    task: PipelineTask, path: StoredPath, rows: int, *, table: str, id_key: str = ""
) -> WrittenFile:
    relative = relative_path(stored_path(task.folder), path)
    return WrittenFile(table, "", relative, rows, size_of(path), [], [], id_key)


def _sort(task: PipelineTask) -> TaskResult:
    """Sort segments: one operation for each key."""
    table = _table(task)
    folder = stored_path(task.folder)
    parts = [
        file
        for chunk in _chunks(folder, table, task)
        if (file := _write_chunk(folder, table, chunk)) is not None
    ]
    if len(parts) <= 1:
        return TaskResult([_file_of(task, "", file) for file in parts])
    result = _merge_files(task, table, [part.path for part in parts])
    for part in parts:
        part.path.unlink()
    return result


def _write_chunk(
    folder: StoredPath, table: AnalyticsTable, chunk: pa.Table
) -> SortedFileInfo | None:
    path = folder / "sorted" / f"{uuid4().hex}.parquet"
    return write_sorted(path, table.stored, table.key, [latest(chunk, table.key, table.bits)])


def _merge(task: PipelineTask) -> TaskResult:
    """Merge several sorted files into one."""
    folder = stored_path(task.folder)
    return _merge_files(task, _table(task), [folder / path for path in task.inputs])


def _merge_files(
    task: PipelineTask, table: AnalyticsTable, paths: Sequence[StoredPath]
) -> TaskResult:
    with ExitStack() as stack:
        files = [_open_sorted(path, table.key, stack) for path in paths]
        merged = (_latest(table, block) for block in blocks(files))
        path = stored_path(task.folder) / task.kind / f"{uuid4().hex}.parquet"
        file = write_sorted(path, table.stored, table.key, merged)
    return TaskResult([] if file is None else [_file_of(task, "", file)])


def _enter(task: PipelineTask) -> TaskResult:
    """Merge operations into a range of the authority's primary view."""
    table = _table(task)
    changes = ChangeWriter(stored_path(task.folder), table)

    def merge(base: pa.Table | None, operations: pa.Table) -> pa.Table:
        if base is not None and not operations.num_rows:
            return base
        rows = (
            operations
            if base is None
            else _latest(table, [with_mask(table, base, table.inserted), operations])
        )
        remaining = live_rows(rows)
        changes.add(base, operations, remaining)
        return remaining

    result = _range(task, table, table.primary, lambda block: _latest(table, block), merge)
    written_files = [_file_of(task, view, file) for view, file in changes.written()]
    return TaskResult(result.files, written_files, result.unchanged)


def _enter_view(task: PipelineTask) -> TaskResult:
    """Merge changes into a range of a secondary view of the authority."""
    table = _table(task)
    view = table.view(task.view)

    def latest_changes(block: Sequence[pa.Table]) -> pa.Table:
        # Every change replaces the whole row, so the last one of a key is the result.
        return latest(pa.concat_tables(block), view.key, {})

    def merge(base: pa.Table | None, changes: pa.Table) -> pa.Table:
        if base is None:
            return live_rows(changes)
        if not changes.num_rows:
            return base
        return live_rows(latest_changes([with_mask(table, base, table.inserted), changes]))

    return _range(task, table, view, latest_changes, merge)


def _range(
    task: PipelineTask,
    table: AnalyticsTable,
    view: TableView,
    combine: Callable[[Sequence[pa.Table]], pa.Table],
    merge: Callable[[pa.Table | None, pa.Table], pa.Table],
) -> TaskResult:
    """Rewrite a range of a view, if anything in it has changed."""
    folder = stored_path(task.folder)
    schema = authority_schema(table, view)
    low, high = _key(task.low), _key(task.high)
    with ExitStack() as stack:
        inputs = [_open_sorted(folder / path, view.key, stack) for path in task.inputs]
        if not any(file.holds(low, high) for file in inputs):
            return TaskResult(unchanged=True)
        base = [] if task.base is None else [_open_sorted(folder / task.base, view.key, stack)]

        def rewritten() -> Iterator[pa.Table]:
            for block in blocks([*base, *inputs], low, high):
                base_rows = _with_all_columns(block[0], schema) if base else None
                operations = combine(block[1:] if base else block)
                rows = merge(base_rows, operations).select(schema.names)
                yield rows.cast(schema)

        return TaskResult(list(_split(task, view, schema, rewritten())))


def _split(
    task: PipelineTask, view: TableView, schema: pa.Schema, rows: Iterable[pa.Table]
) -> Iterator[WrittenFile]:
    """Write rows to files of similar size."""
    buffered: list[pa.Table] = []
    for block in rows:
        buffered.append(block)
        if sum(part.nbytes for part in buffered) >= FILE_BYTES:
            yield from _write_file(task, view, schema, buffered)
            buffered = []
    yield from _write_file(task, view, schema, buffered)


def _write_file(
    task: PipelineTask, view: TableView, schema: pa.Schema, rows: Sequence[pa.Table]
) -> Iterator[WrittenFile]:
    path = stored_path(task.folder) / "authority" / f"{uuid4().hex}.parquet"
    file = write_sorted(path, schema, view.key, rows)
    if file is not None:
        yield _file_of(task, view.name, file)


def authority_schema(table: AnalyticsTable, view: TableView) -> pa.Schema:
    """Return a view's columns with their Iceberg field ids.

    Columns are only ever appended, so a column's position is its permanent field id.
    """
    return pa.schema(
        [
            field.with_metadata({b"PARQUET:field_id": str(number).encode()})
            for number, field in enumerate(table.view_schema(view), start=1)
        ]
    )


def _chunks(folder: StoredPath, table: AnalyticsTable, task: PipelineTask) -> Iterator[pa.Table]:
    buffered: list[pa.Table] = []
    ids = {name: read_ids(folder / path) for name, path in task.ids.items()}
    for index, path in enumerate(task.inputs):
        rows = read_segment(folder / path, table, list(table.columns))
        if task.begins:
            begins = task.begins[index]
            # A segment that is older than a column has no keys for it.
            columns = [(c, n) for c, n in table.ids.items() if n in begins]
            rows = with_final_ids(rows, [(c, ids[n].slice(begins[n])) for c, n in columns])
        buffered.append(rows)
        if sum(rows.nbytes for rows in buffered) >= CHUNK_BYTES:
            yield pa.concat_tables(buffered)
            buffered = []
    if buffered:
        yield pa.concat_tables(buffered)


def _latest(table: AnalyticsTable, block: Sequence[pa.Table]) -> pa.Table:
    names = list(table.columns)
    rows = pa.concat_tables([with_columns(part, table, names) for part in block])
    return latest(rows, table.key, table.bits)


def _with_all_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with all columns of a schema. Columns that were added later are null."""
    arrays = [
        rows[field.name] if field.name in rows.column_names else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema.remove_metadata())


def _open_sorted(path: StoredPath, key: Sequence[str], stack: ExitStack) -> SortedFile:
    file = SortedFile(path, key)
    stack.callback(file.close)
    return file


def _file_of(task: PipelineTask, view: str, file: SortedFileInfo) -> WrittenFile:
    return WrittenFile(
        table=task.table,
        view=view,
        path=relative_path(stored_path(task.folder), file.path),
        rows=file.rows,
        bytes=file.bytes,
        lowest=to_plain(file.lowest),
        highest=to_plain(file.highest),
    )


def _key(plain: Plain | None) -> Key | None:
    return None if plain is None else from_plain(plain)


def _table(task: PipelineTask) -> AnalyticsTable:
    return tables_of(task.definition)[task.table]


_KINDS: Mapping[str, Callable[[PipelineTask], TaskResult]] = {
    "ids": _assign_ids,
    "sorted": _sort,
    "merged": _merge,
    "authority": _enter,
    "authority_view": _enter_view,
}
