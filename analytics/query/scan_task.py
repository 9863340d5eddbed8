"""Scan tasks: pieces of a query as JSON, for workers that use neither Django nor PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import pyarrow as pa

from analytics.query.engine import query_engine
from analytics.query.files import ReadPlan
from analytics.query.id_keys import IdKey
from analytics.query.pieces import KeyRange, answer_piece
from analytics.query.plan_json import plan_json, read_plan
from analytics.query.query_parser import AnalyticsQuery, read_query
from analytics.query.scan import ScanReader
from analytics.rows.durable import durable_file
from analytics.rows.file_store import StoredPath, open_file, stored_path
from analytics.rows.keys import Key, from_plain, to_plain
from analytics.schema import tables_of
from foundation.errors import ApiError
from foundation.json_types import JsonObject

KIND = "scan"
#: For each ID-key of a query, the ids of the keys used in it.
Ids = Mapping[str, Mapping[int | str, int]]


def plan_tasks(
    definition: str,
    body: JsonObject,
    plan: ReadPlan,
    ids: Ids,
    pieces: Sequence[KeyRange],
    folder: StoredPath,
) -> list[str]:
    """Return a task for each piece. Workers write their tables to `folder`."""
    shared = {
        "kind": KIND,
        "definition": definition,
        "body": body,
        "state": plan.state,
        "files": plan_json(plan, (), str),
        "ids": {name: [[key, id_] for key, id_ in by_key.items()] for name, by_key in ids.items()},
        "folder": str(folder),
    }
    return [
        json.dumps({**shared, "low": _key_json(p.low), "high": _key_json(p.high)}) for p in pieces
    ]


def run_task(task: Mapping[str, Any]) -> JsonObject:
    """Run a task. Errors of the query are returned as results."""
    try:
        return _scan(task)
    except ApiError as error:
        return {"refused": error.code, "detail": error.detail}
    except FileNotFoundError:
        return {"gone": True}


def read_answer(answer: Mapping[str, Any]) -> list[pa.Table]:
    """Return the tables of a task's result, and remove their files."""
    tables = []
    for name in answer["tables"]:
        path = stored_path(name)
        with open_file(path) as source, pa.ipc.open_file(source) as file:
            tables.append(file.read_all())
        path.unlink(missing_ok=True)
    return tables


def _scan(task: Mapping[str, Any]) -> JsonObject:
    tables = tables_of(task["definition"])
    query: AnalyticsQuery = read_query(task["body"], tables, max_limit=2**31)
    ids = {name: dict(map(tuple, pairs)) for name, pairs in task["ids"].items()}
    where, _ = query.filters.resolve(ids)
    reader = ScanReader()
    plan = read_plan(task["state"], task["files"])
    id_keys = {
        name: IdKey(query.id_tables[name], id_plan, reader)
        for name, id_plan in plan.id_keys.items()
    }
    piece = KeyRange(_key(task["low"]), _key(task["high"]))
    with query_engine() as engine:
        tables_found = answer_piece(query, plan, where, piece, reader, id_keys, engine)
    paths = []
    for table in tables_found:
        path = stored_path(task["folder"]) / f"{uuid4().hex}.arrow"
        with (
            durable_file(path) as file,
            pa.ipc.new_file(str(file), table.schema) as writer,
        ):
            writer.write_table(table)
        paths.append(str(path))
    return {"tables": list(paths), "read": reader.describe()}


def _key_json(key: Key | None) -> list[int | str | None] | None:
    return None if key is None else to_plain(key)


def _key(plain: list[int | str | None] | None) -> Key | None:
    return None if plain is None else from_plain(plain)
