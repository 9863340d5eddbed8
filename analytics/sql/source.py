"""The files that a statement may read, in one folder of this machine.

That is the dataset's folder. If the files are objects of a store, they are copied to this machine
first, since workers reach no network; files never change, so copies serve later statements too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from analytics.facts import DatasetFacts
from analytics.query.files import ReadPlan
from analytics.query.plan_json import plan_json
from analytics.rows.durable import local_folder
from analytics.rows.file_store import StoredPath, open_file, relative_path, size_of
from analytics.rows.objects import ObjectPath
from foundation.environment import environment
from foundation.errors import QueryTooExpensive
from foundation.json_types import JsonObject

_MIB = 1024 * 1024
_PART_BYTES = 8 * _MIB
_COPIES, _TEMPORARY = "copies", "sql"


def temporary_folder() -> Path:
    """Return the folder of the temporary files of all statements."""
    folder = local_folder() / _TEMPORARY
    folder.mkdir(mode=0o711, exist_ok=True)
    return folder


def readable_folder(dataset: DatasetFacts) -> Path:
    """Return the folder that a worker of a dataset may read."""
    folder = dataset.folder
    if isinstance(folder, Path):
        return folder if folder.is_dir() else _empty_folder()
    copies = local_folder() / _COPIES / str(dataset.id)
    copies.mkdir(parents=True, exist_ok=True)
    return copies


def _empty_folder() -> Path:
    """Return a folder without files: nothing has been uploaded yet."""
    folder = local_folder() / "nothing"
    folder.mkdir(exist_ok=True)
    return folder


def provided(
    dataset: DatasetFacts, plans: Mapping[str, ReadPlan], views: Mapping[str, Iterable[str]]
) -> JsonObject:
    """Return the plans with paths in the readable folder, once their files are in it.

    `views` names the views of each table that the statement reads.
    """
    folder = dataset.folder
    if isinstance(folder, ObjectPath):
        _copy(readable_folder(dataset), _files(plans))
        return {name: plan_json(plan, [*views[name]], _copied_name) for name, plan in plans.items()}
    return {
        name: plan_json(plan, [*views[name]], lambda path: relative_path(folder, path))
        for name, plan in plans.items()
    }


def _files(plans: Mapping[str, ReadPlan]) -> list[StoredPath]:
    found: dict[StoredPath, None] = {}
    for plan in plans.values():
        ids = [file for one in plan.id_keys.values() for file in (*one.authority, *one.later)]
        lists = [file for one in plan.id_keys.values() for file in one.lists]
        for file in (*plan.authority, *plan.later, *ids, *lists):
            found[file.path] = None
    return list(found)


def _copied_name(path: StoredPath) -> str:
    """Return the name of a copy. Names of stored files are unique within a dataset."""
    return path.name


def _copy(folder: Path, paths: Iterable[StoredPath]) -> None:
    """Copy the objects that are not here yet, after making room for them."""
    missing = []
    for path in paths:
        copy = folder / _copied_name(path)
        try:
            os.utime(copy)
        except FileNotFoundError:
            missing.append(path)
    if not missing:
        return
    _make_room(sum(size_of(path) for path in missing))
    for path in missing:
        begun = folder / f"{uuid4().hex}.begun"
        try:
            with open_file(path) as source, begun.open("wb") as copy_file:
                while part := source.read(_PART_BYTES):
                    copy_file.write(part)
            begun.replace(folder / _copied_name(path))
        finally:
            begun.unlink(missing_ok=True)


def _make_room(needed_bytes: int) -> None:
    """Remove the copies that have not been read for the longest time."""
    allowed = environment().rillbase_sql_copies_mib * _MIB - needed_bytes
    if allowed < 0:
        raise QueryTooExpensive("The files of the tables are too large for SQL.")
    copies = []
    for path in (local_folder() / _COPIES).rglob("*"):
        with suppress(FileNotFoundError):
            if path.is_file():
                status = path.stat()
                copies.append((status.st_mtime, status.st_size, path))
    held = sum(size for _, size, _ in copies)
    for _, size, path in sorted(copies):
        if held <= allowed:
            return
        path.unlink(missing_ok=True)
        held -= size
