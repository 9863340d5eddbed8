"""Cross-checks between the parts of a definition, each of which is already well-formed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from analytics.table_definitions import (
    ID,
    KEY,
    MAX_DATA_COLUMNS,
    DatasetDefinition,
    IdKeyDefinition,
    TableDefinition,
    ViewDefinition,
    ids_of,
)
from foundation.errors import FieldProblem, InvalidBody

#: Members of an uploaded line that are not tables.
RESERVED_TABLES = ("op", "null")
#: Types not allowed in keys: values may differ but look alike, or not compare like other values.
UNFIT_FOR_KEYS = ("double", "bool")


def completed(definition: DatasetDefinition) -> DatasetDefinition:
    """Return a valid definition with explicit view columns, or raise `InvalidBody`."""
    tables, id_keys = definition["tables"], definition["id_keys"]
    problems = [problem for name, table in tables.items() for problem in _table(name, table)]
    for name, table in tables.items():
        problems += _unknown_id_keys(name, table, id_keys)
    problems += [
        _problem(f"/id_keys/{name}", "A table already has this name.")
        for name in id_keys
        if name in tables
    ]
    problems += [problem for name, kind in id_keys.items() for problem in _parts(name, kind)]
    if problems:
        raise InvalidBody(errors=problems)
    complete = {name: _complete(table) for name, table in tables.items()}
    return {"tables": complete, "id_keys": id_keys}


def check_change(before: DatasetDefinition, after: DatasetDefinition) -> None:
    """Raise `InvalidBody` unless `after` only adds to `before`."""
    tables = after["tables"]
    problems = [
        _problem(f"/tables/{name}", "A table cannot be removed.")
        for name in before["tables"]
        if name not in tables
    ]
    for name, table in before["tables"].items():
        if name in tables:
            problems += _changed(name, table, tables[name])
    problems += [
        _problem(f"/id_keys/{name}", "An ID-key cannot be changed.")
        for name, kind in before["id_keys"].items()
        if after["id_keys"].get(name) != kind
    ]
    if problems:
        raise InvalidBody(errors=problems)


def _complete(table: TableDefinition) -> TableDefinition:
    views: dict[str, ViewDefinition] = {
        name: {"key": view["key"], "columns": list(view.get("columns", table["columns"]))}
        for name, view in table["views"].items()
    }
    return {"columns": table["columns"], "key": table["key"], "views": views}


def _table(name: str, table: TableDefinition) -> Iterator[FieldProblem]:
    pointer = f"/tables/{name}"
    if name in RESERVED_TABLES:
        yield _problem(pointer, "This name is reserved in uploads.")
    columns = table["columns"]
    if len({column.lower() for column in columns}) < len(columns):
        yield _problem(f"{pointer}/columns", "Two names differ only in case.")
    if len(columns) - len(table["key"]) > MAX_DATA_COLUMNS:
        yield _problem(f"{pointer}/columns", f"At most {MAX_DATA_COLUMNS} columns beside the key.")
    yield from _key(f"{pointer}/key", table["key"], columns)
    for view_name, view in table["views"].items():
        yield from _view(f"{pointer}/views/{view_name}", view, table)


def _unknown_id_keys(
    name: str, table: TableDefinition, id_keys: Mapping[str, IdKeyDefinition]
) -> Iterator[FieldProblem]:
    for column, id_key in ids_of(table).items():
        if id_key not in id_keys:
            pointer = f"/tables/{name}/columns/{column}"
            yield _problem(pointer, f"The ID-key {id_key!r} is missing from `id_keys`.")


def _parts(name: str, kind: IdKeyDefinition) -> Iterator[FieldProblem]:
    """Yield problems with key parts, which become columns of the ID-key's table."""
    names = [KEY, ID, *(part.lower() for part in kind)] if isinstance(kind, dict) else []
    if len(set(names)) < len(names):
        detail = f"A part must not be named {KEY} or {ID}, and names must differ in more than case."
        yield _problem(f"/id_keys/{name}", detail)


def _key(pointer: str, key: list[str], columns: Mapping[str, str]) -> Iterator[FieldProblem]:
    if len(set(key)) < len(key):
        yield _problem(pointer, "A column is named twice.")
    for column in key:
        if column not in columns:
            yield _problem(pointer, f"The column {column!r} does not exist.")
        elif columns[column] in UNFIT_FOR_KEYS:
            yield _problem(pointer, f"A {columns[column]} cannot be part of a key.")


def _view(pointer: str, view: ViewDefinition, table: TableDefinition) -> Iterator[FieldProblem]:
    yield from _unknown_columns(f"{pointer}/columns", view.get("columns", ()), table["columns"])
    yield from _key(f"{pointer}/key", view["key"], table["columns"])
    missing = [column for column in table["key"] if column not in view["key"]]
    if missing:
        yield _problem(
            f"{pointer}/key", f"The column {missing[0]!r} of the table's key is missing."
        )
    if "columns" in view and not set(view["key"]) <= set(view["columns"]):
        yield _problem(f"{pointer}/columns", "The view must contain the columns of its key.")


def _unknown_columns(
    pointer: str, columns_used: Iterable[str], columns: Mapping[str, str]
) -> Iterator[FieldProblem]:
    names = list(columns_used)
    if len(set(names)) < len(names):
        yield _problem(pointer, "A column is named twice.")
    for column in names:
        if column not in columns:
            yield _problem(pointer, f"The column {column!r} does not exist.")


def _changed(name: str, old: TableDefinition, new: TableDefinition) -> Iterator[FieldProblem]:
    pointer = f"/tables/{name}"
    if list(new["columns"].items())[: len(old["columns"])] != list(old["columns"].items()):
        yield _problem(
            f"{pointer}/columns", "Existing columns cannot be changed and must come first."
        )
    if new["key"] != old["key"]:
        yield _problem(f"{pointer}/key", "The key cannot be changed.")
    if new["views"] != old["views"]:
        yield _problem(f"{pointer}/views", "Existing views cannot be changed.")


def _problem(pointer: str, detail: str) -> FieldProblem:
    return FieldProblem(pointer, "invalid", detail)
