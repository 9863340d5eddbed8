"""Rows for the benchmark of analytics tables: posts of a kilobyte, events of a hundred bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

#: As the paper has it: a row of a post has its user with it, and is known by its id.
TABLES: Mapping[str, Mapping[str, Any]] = {
    "tweets": {
        "columns": {
            "id": "int64",
            "at": "timestamp",
            "text": "string",
            "source": "string",
            "user_id": "int64",
            "user_name": "string",
            "description": "string",
            "location": "string",
            "followers": "int64",
            "friends": "int64",
        },
        "key": ["id"],
    },
    "events": {
        "columns": {
            "id": "int64",
            "at": "timestamp",
            "device": "int64",
            "kind": "string",
            "value": "double",
            "note": "string",
        },
        "key": ["id"],
    },
}
_TEXT_CHARS, _DESCRIPTION_CHARS, _NOTE_CHARS = 280, 600, 44
_POOL = 4096
_EPOCH_US = 1_700_000_000_000_000


def rows(workload: str, first: int, count: int, stride: int) -> pa.Table:
    """Return rows whose ids are `first`, `first` + stride, …: uploads lie across one another."""
    rng = np.random.default_rng(first + 1)
    ids = first + stride * np.arange(count, dtype=np.int64)
    at = pa.array(_EPOCH_US + ids * 1000).cast(pa.timestamp("us", "UTC"))
    if workload == "events":
        columns = {
            "id": ids,
            "at": at,
            "device": rng.integers(0, 10_000, count),
            "kind": _picked(rng, count, 8, 40),
            "value": rng.random(count),
            "note": _picked(rng, count, _NOTE_CHARS, _POOL),
        }
    else:
        columns = {
            "id": ids,
            "at": at,
            "text": _picked(rng, count, _TEXT_CHARS, _POOL),
            "source": _picked(rng, count, 16, 12),
            "user_id": rng.integers(0, 1_000_000, count),
            "user_name": _picked(rng, count, 14, _POOL),
            "description": _picked(rng, count, _DESCRIPTION_CHARS, _POOL),
            "location": _picked(rng, count, 20, 500),
            "followers": rng.integers(0, 100_000, count),
            "friends": rng.integers(0, 5_000, count),
        }
    return pa.table(columns)


def as_stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _picked(rng: np.random.Generator, count: int, chars: int, pool: int) -> pa.Array:
    """Return texts, each one of a pool of random ones."""
    letters = rng.integers(ord("a"), ord("z") + 1, (pool, chars), dtype=np.uint8)
    texts = pa.array([row.tobytes().decode() for row in letters])
    return texts.take(pa.array(rng.integers(0, pool, count)))
