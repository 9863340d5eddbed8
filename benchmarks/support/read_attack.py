"""Reads that no index helps, from a tenant with ordinary quotas."""

from __future__ import annotations

from collections import Counter
from itertools import cycle

from benchmarks.support.call_attack import Call, Callers, send

#: Callers, and the documents of the collection that they read.
CONCURRENT, DOCUMENTS = 40, 20_000
_INSERTED_AT_ONCE = 1_000
_TEXT = "x" * 200
_MEASURES = {"number": {"op": "count"}}


def fill(port: int, key: str, collection: str) -> None:
    """Insert the documents."""
    path = f"/v1/collections/{collection}/documents:bulk"
    for first in range(0, DOCUMENTS, _INSERTED_AT_ONCE):
        numbers = range(first, first + _INSERTED_AT_ONCE)
        operations = [
            {"insert": {"_id": f"d{n}", "n": n * 7919 % DOCUMENTS, "text": _TEXT}} for n in numbers
        ]
        status = send(port, key, Call(path, {"operations": operations}))
        if status >= 300:
            raise RuntimeError(f"The documents were not inserted: {status}.")


async def run(port: int, key: str, collection: str, responses: Counter[int]) -> None:
    """Attack until cancelled."""
    path, condition = f"/v1/collections/{collection}", {"n": {"$gte": 10}}
    group = {"by": ["n"], "measures": _MEASURES}
    calls = [
        Call(f"{path}/query", {"filter": condition, "sort": [["n", 1]], "limit": 10}),
        Call(f"{path}/query", {"filter": condition, "group": group}),
        Call(f"{path}/count", {"filter": condition}),
    ]
    await Callers(port, key, CONCURRENT, 0, responses).run(cycle(calls))
