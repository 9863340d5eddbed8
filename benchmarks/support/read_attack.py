"""Reads that no index helps, exports and imports, from a tenant with ordinary quotas."""

from __future__ import annotations

import json
from collections import Counter
from itertools import cycle

from benchmarks.support.call_attack import Call, Callers, send

#: Callers, and the documents of the collection that they read.
CONCURRENT, DOCUMENTS = 40, 20_000
_INSERTED_AT_ONCE = 1_000
_TEXT = "x" * 200
_MEASURES = {"number": {"op": "count"}}
#: Of an import, each the same documents again.
_IMPORTED = 5_000
_NDJSON = "application/x-ndjson"


def fill(port: int, key: str, collection: str) -> None:
    """Insert the documents."""
    path = f"/v1/collections/{collection}/documents:bulk"
    for first in range(0, DOCUMENTS, _INSERTED_AT_ONCE):
        numbers = range(first, first + _INSERTED_AT_ONCE)
        operations = [{"insert": _document(n)} for n in numbers]
        status = send(port, key, Call(path, {"operations": operations}))
        if status >= 300:
            raise RuntimeError(f"The documents were not inserted: {status}.")


async def run(port: int, key: str, collection: str, responses: Counter[int]) -> None:
    """Attack until cancelled."""
    path, condition = f"/v1/collections/{collection}", {"n": {"$gte": 10}}
    group = {"by": ["n"], "measures": _MEASURES}
    lookup = [{"from": collection, "local": "other", "as": "other"}]
    lines = "".join(json.dumps(_document(n)) + "\n" for n in range(_IMPORTED)).encode()
    calls = [
        Call(f"{path}/query", {"filter": condition, "sort": [["n", 1]], "limit": 10}),
        Call(f"{path}/query", {"filter": condition, "group": group}),
        Call(f"{path}/query", {"filter": condition, "lookup": lookup, "limit": 1_000}),
        Call(f"{path}/count", {"filter": condition}),
        Call(f"{path}/export", None),
        Call(f"{path}/import?mode=upsert", lines, _NDJSON),
    ]
    await Callers(port, key, CONCURRENT, 0, responses).run(cycle(calls))


def _document(number: int) -> dict[str, object]:
    order = number * 7919 % DOCUMENTS
    return {"_id": f"d{number}", "n": order, "other": f"d{order}", "text": _TEXT}
