"""A piece of a query as JSON, for workers that know neither Django nor PostgreSQL."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import uuid4

import pyarrow as pa

from analytics.query.asked import Query, read_query
from analytics.query.files import File, IdPlan, Plan
from analytics.query.id_keys import IdKey
from analytics.query.pieces import Piece, answer_piece
from analytics.query.scan import Reading
from analytics.rows.durable import written
from analytics.rows.keys import Key, from_plain, to_plain
from analytics.rows.stored import StoredPath, opened, stored_path
from analytics.schema import tables_of
from foundation.errors import ApiError
from foundation.json_types import JsonObject

KIND = "scan"
#: Between a key that a query names and its ids, in JSON.
Ids = Mapping[str, Mapping[int | str, int]]


def tell(
    definition: str,
    body: JsonObject,
    plan: Plan,
    ids: Ids,
    pieces: Sequence[Piece],
    folder: StoredPath,
) -> list[str]:
    """Return a task for each piece. Answers are written to `folder`."""
    files: JsonObject = {
        "authority": [_told(file) for file in plan.authority if file.view == ""],
        "later": [_told(file) for file in plan.later],
        "id_keys": {
            name: {
                "authority": [_told(file) for file in one.authority],
                "later": [_told(file) for file in one.later],
                "lists": [_told(file) for file in one.lists],
            }
            for name, one in plan.id_keys.items()
        },
    }
    shared = {
        "kind": KIND,
        "definition": definition,
        "body": body,
        "state": plan.state,
        "files": files,
        "ids": {name: [[key, id_] for key, id_ in found.items()] for name, found in ids.items()},
        "folder": str(folder),
    }
    return [json.dumps({**shared, "low": _plain(p.low), "high": _plain(p.high)}) for p in pieces]


def do(told: Mapping[str, Any]) -> JsonObject:
    """Answer a piece. What the query does wrong is part of the answer."""
    try:
        return _done(told)
    except ApiError as refused:
        return {"refused": refused.code, "detail": refused.detail}
    except FileNotFoundError:
        return {"gone": True}


def read(answer: Mapping[str, Any]) -> list[pa.Table]:
    """Return the tables of a piece's answer, and remove their files."""
    tables = []
    for name in answer["tables"]:
        path = stored_path(name)
        with opened(path) as source, pa.ipc.open_file(source) as file:
            tables.append(file.read_all())
        path.unlink(missing_ok=True)
    return tables


def _done(told: Mapping[str, Any]) -> JsonObject:
    tables = tables_of(told["definition"])
    query: Query = read_query(told["body"], tables, max_limit=2**31)
    ids = {name: dict(map(tuple, found)) for name, found in told["ids"].items()}
    where, _ = query.filters.resolved(ids)
    reading = Reading()
    plan = _plan(told)
    id_keys = {
        name: IdKey(query.id_tables[name], one, reading) for name, one in plan.id_keys.items()
    }
    piece = Piece(_key(told["low"]), _key(told["high"]))
    paths = []
    for table in answer_piece(query, plan, where, piece, reading, id_keys):
        path = stored_path(told["folder"]) / f"{uuid4().hex}.arrow"
        with written(path) as here, pa.ipc.new_file(str(here), table.schema) as writer:
            writer.write_table(table)
        paths.append(str(path))
    return {"tables": list(paths), "read": reading.describe()}


def _plan(told: Mapping[str, Any]) -> Plan:
    files = told["files"]
    id_keys = {
        name: IdPlan(*([_file(f) for f in one[part]] for part in ("authority", "later", "lists")))
        for name, one in files["id_keys"].items()
    }
    authority, later = ([_file(f) for f in files[part]] for part in ("authority", "later"))
    return Plan(told["state"], 0.0, authority, later, id_keys)


def _told(file: File) -> JsonObject:
    return {
        "path": str(file.path),
        "stage": file.stage,
        "view": file.view,
        "rows": file.rows,
        "lowest": list(to_plain(file.lowest)),
        "highest": list(to_plain(file.highest)),
        "part": None if file.part is None else list(file.part),
    }


def _file(told: Mapping[str, Any]) -> File:
    return File(
        stored_path(told["path"]),
        told["stage"],
        told["view"],
        told["rows"],
        from_plain(told["lowest"]),
        from_plain(told["highest"]),
        None if told["part"] is None else (told["part"][0], told["part"][1]),
    )


def _plain(key: Key | None) -> list[int | str | None] | None:
    return None if key is None else to_plain(key)


def _key(told: list[int | str | None] | None) -> Key | None:
    return None if told is None else from_plain(told)
