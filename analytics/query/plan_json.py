"""A plan as JSON, for processes that use neither Django nor PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from analytics.query.files import IdPlan, QueryFile, ReadPlan
from analytics.rows.file_store import StoredPath, stored_path
from analytics.rows.keys import from_plain, to_plain
from foundation.json_types import JsonObject, JsonValue

_ID_FILES = ("authority", "later", "lists")


def plan_json(
    plan: ReadPlan, views: Collection[str], text_of: Callable[[StoredPath], str]
) -> JsonObject:
    """Return the files of a plan: of its table, those of the primary view and of these views.

    `text_of` says how the reader finds a file.
    """

    def described(files: Sequence[QueryFile]) -> JsonValue:
        return [_file_json(file, text_of(file.path)) for file in files]

    return {
        "authority": described([file for file in plan.authority if file.view in ("", *views)]),
        "later": described(plan.later),
        "id_keys": {
            name: {part: described(getattr(id_plan, part)) for part in _ID_FILES}
            for name, id_plan in plan.id_keys.items()
        },
    }


def read_plan(state: int, files: Mapping[str, Any]) -> ReadPlan:
    """Return the plan of a state from its files."""
    id_keys = {
        name: IdPlan(*([_file(file) for file in one[part]] for part in _ID_FILES))
        for name, one in files["id_keys"].items()
    }
    authority, later = ([_file(file) for file in files[part]] for part in ("authority", "later"))
    return ReadPlan(state, 0.0, authority, later, id_keys)


def _file_json(file: QueryFile, path: str) -> JsonObject:
    return {
        "path": path,
        "stage": file.stage,
        "view": file.view,
        "rows": file.rows,
        "lowest": list(to_plain(file.lowest)),
        "highest": list(to_plain(file.highest)),
        "part": None if file.part is None else list(file.part),
    }


def _file(field: Mapping[str, Any]) -> QueryFile:
    return QueryFile(
        stored_path(field["path"]),
        field["stage"],
        field["view"],
        field["rows"],
        from_plain(field["lowest"]),
        from_plain(field["highest"]),
        None if field["part"] is None else (field["part"][0], field["part"][1]),
    )
