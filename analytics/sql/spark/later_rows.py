"""Writes a table's rows that are not in the authority yet, for Spark to read.

Runs in Spark's Python workers, with the code that merges these rows for every other query.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from analytics.query.filters import RowFilter
from analytics.query.id_keys import IdKey
from analytics.query.plan_json import read_plan
from analytics.query.scan import ScanReader
from analytics.query.state_rows import operations_at, rows_after
from analytics.rows.keys import Plain, key_at
from analytics.schema import tables_of
from foundation.errors import ApiError
from foundation.sandbox.problems import problem_json


@dataclass(frozen=True, slots=True)
class LaterRowsTask:
    """What to merge, and where the results go."""

    definition: str
    table: str
    columns: list[str]
    state: int
    plan: dict[str, Any]
    #: The folder of the dataset, to which paths are relative, and the one to write to.
    folder: str
    target: str


@dataclass(frozen=True, slots=True)
class LaterRows:
    """The files with the keys of all operations and with the rows on these keys."""

    keys: str
    rows: str
    #: The first columns of the least and of the greatest key.
    low: Plain
    high: Plain


def run_task(text: str) -> str:
    """Run a task. Called by workers; errors of the statement are results."""
    try:
        later = _write(LaterRowsTask(**json.loads(text)))
    except ApiError as error:
        return json.dumps({"problem": problem_json(error)})
    except FileNotFoundError:
        return json.dumps({"gone": True})
    return json.dumps({"later": None if later is None else asdict(later)})


def _write(task: LaterRowsTask) -> LaterRows | None:
    """Write the files; return None if there are no operations."""
    tables = tables_of(task.definition)
    table, plan = tables[task.table], read_plan(task.state, in_folder(task.plan, task.folder))
    reader = ScanReader()
    id_keys = {name: IdKey(tables[name], one, reader) for name, one in plan.id_keys.items()}
    names = [name for name in table.columns if name in {*task.columns, *table.key}]
    operations = operations_at(plan, table, names, RowFilter(), reader, id_keys)
    if not operations.num_rows:
        return None
    target = Path(task.target)
    target.mkdir(parents=True, exist_ok=True)
    keys, rows = target / f"{table.name}.keys.parquet", target / f"{table.name}.rows.parquet"
    pq.write_table(operations.select([*table.key]), keys, compression="lz4")
    pq.write_table(rows_after(plan, table, names, operations, reader), rows, compression="lz4")
    bounds = [key_at(operations, table.key[:1], n)[0] for n in (0, operations.num_rows - 1)]
    return LaterRows(str(keys), str(rows), [bounds[0]], [bounds[1]])  # type: ignore[list-item]


def in_folder(plan: Mapping[str, Any], folder: str) -> dict[str, Any]:
    """Return a plan whose paths were relative to a folder."""

    def absolute(files: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**file, "path": str(Path(folder) / file["path"])} for file in files]

    return {
        **{part: absolute(plan[part]) for part in ("authority", "later")},
        "id_keys": {
            name: {part: absolute(files) for part, files in one.items()}
            for name, one in plan["id_keys"].items()
        },
    }
