"""The uploads of the analytics benchmark: the paper's two workloads, and small events.

tweets   rows of a kilobyte, a post with its user, known by its id
events   rows of a hundred bytes
indexed  the same with keys in random order, and a secondary view: the hardest case for indexes
complex  two tables that share an ID-key, each with a secondary view: for every id one row of
         `test_one` and three of `test_two`

The key ranges of uploads overlap, like those of uploads from many sources.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

_TEXT_CHARS, _DESCRIPTION_CHARS, _NOTE_CHARS, _STRING_CHARS = 280, 600, 44, 24
_POOL = 4096
_EPOCH_US = 1_700_000_000_000_000
#: Rows of `test_two` per row of `test_one`.
ATTRIBUTES = 3
#: Odd, so that different numbers have different keys, and neighbours are far apart.
_SPREAD = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True)
class Workload:
    """Tables, and the rows of each upload: the n-th of so many, with so many rows."""

    definition: Mapping[str, Any]
    tables: Callable[[int, int, int], dict[str, pa.Table]]
    #: The table whose single rows are read, its key column, and the key of the n-th row.
    queried_table: str
    key: str
    key_of: Callable[[int], int]
    #: The number of an upload's rows in that table.
    share: float
    #: The goals for the rate to the authority, and for the ratio to COPY.
    sustained: str
    by_copy: str

    @property
    def has_ranges(self) -> bool:
        """Whether rows that are neighbours have neighbouring keys."""
        return self.key_of is _itself

    def body(self, number: int, rows: int, uploads: int) -> bytes:
        """Return an upload as Arrow streams, one after the other."""
        tables = self.tables(number, rows, uploads)
        return b"".join(stream(name, table) for name, table in tables.items())


def key_of(number: int) -> int:
    """Return the n-th key of a workload with keys in random order."""
    spread = (number + 1) * _SPREAD % 2**64
    return spread - 2**64 if spread >= 2**63 else spread


def _tweets(first: int, count: int, stride: int) -> dict[str, pa.Table]:
    rng, ids, at = _begin(first, count, stride)
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
    return {"tweets": pa.table(columns)}


def _events(first: int, count: int, stride: int) -> dict[str, pa.Table]:
    rng, ids, at = _begin(first, count, stride)
    columns = {
        "id": ids,
        "at": at,
        "device": rng.integers(0, 10_000, count),
        "kind": _picked(rng, count, 8, 40),
        "value": rng.random(count),
        "note": _picked(rng, count, _NOTE_CHARS, _POOL),
    }
    return {"events": pa.table(columns)}


def _indexed(first: int, count: int, stride: int) -> dict[str, pa.Table]:
    events = _events(first, count, stride)["events"]
    keys = pa.array(_spread(events["id"].to_numpy()))
    return {"readings": events.set_column(0, "id", keys)}


def _complex(first: int, count: int, stride: int) -> dict[str, pa.Table]:
    rng, numbers, _ = _begin(first, count // (1 + ATTRIBUTES), stride)
    keys = _spread(numbers)
    one = {
        "id": keys,
        "string_data": _picked(rng, len(keys), _STRING_CHARS, _POOL),
        "int_data": rng.integers(0, 2**31, len(keys), dtype=np.int32),
    }
    two = {
        "id": np.repeat(keys, ATTRIBUTES),
        "attribute": np.tile(np.arange(ATTRIBUTES, dtype=np.int32), len(keys)),
        "value": rng.integers(0, 2**31, len(keys) * ATTRIBUTES, dtype=np.int32),
    }
    return {"test_one": pa.table(one), "test_two": pa.table(two)}


def _spread(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the keys of rows, as `key_of` does for one."""
    return ((numbers.astype(np.uint64) + 1) * np.uint64(_SPREAD)).astype(np.int64)


def _begin(first: int, count: int, stride: int) -> tuple[np.random.Generator, Any, pa.Array]:
    """Return random values, the numbers `first`, `first` + stride, …, and their times."""
    numbers = first + stride * np.arange(count, dtype=np.int64)
    at = pa.array(_EPOCH_US + numbers * 1000).cast(pa.timestamp("us", "UTC"))
    return np.random.default_rng(first + 1), numbers, at


def stream(name: str, table: pa.Table) -> bytes:
    """Return rows of a table as an Arrow stream."""
    table = table.replace_schema_metadata({"rillbase.table": name})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _picked(rng: np.random.Generator, count: int, chars: int, pool: int) -> pa.Array:
    """Return texts from a pool of random ones."""
    letters = rng.integers(ord("a"), ord("z") + 1, (pool, chars), dtype=np.uint8)
    texts = pa.array([row.tobytes().decode() for row in letters])
    return texts.take(pa.array(rng.integers(0, pool, count)))


def _itself(number: int) -> int:
    return number


_EVENT: Mapping[str, str] = {
    "id": "int64",
    "at": "timestamp",
    "device": "int64",
    "kind": "string",
    "value": "double",
    "note": "string",
}
WORKLOADS: Mapping[str, Workload] = {
    "tweets": Workload(
        {
            "tables": {
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
                    "views": {},
                }
            }
        },
        _tweets,
        "tweets",
        "id",
        _itself,
        1.0,
        ">= 40000",
        ">= 3",
    ),
    "events": Workload(
        {"tables": {"events": {"columns": _EVENT, "key": ["id"], "views": {}}}},
        _events,
        "events",
        "id",
        _itself,
        1.0,
        ">= 100000",
        ">= 3",
    ),
    "indexed": Workload(
        {
            "tables": {
                "readings": {
                    "columns": _EVENT,
                    "key": ["id"],
                    "views": {
                        "by_device": {
                            "key": ["device", "id"],
                            "columns": ["device", "id", "at", "value"],
                        }
                    },
                }
            }
        },
        _indexed,
        "readings",
        "id",
        key_of,
        1.0,
        "",
        ">= 3",
    ),
    "complex": Workload(
        {
            "id_keys": {"test_id": "int64"},
            "tables": {
                "test_one": {
                    "columns": {"id": "id:test_id", "string_data": "string", "int_data": "int32"},
                    "key": ["id"],
                    "views": {
                        "by_string": {
                            "key": ["string_data", "id"],
                            "columns": ["string_data", "id", "int_data"],
                        }
                    },
                },
                "test_two": {
                    "columns": {"id": "id:test_id", "attribute": "int32", "value": "int32"},
                    "key": ["id", "attribute"],
                    "views": {
                        "by_value": {
                            "key": ["value", "id", "attribute"],
                            "columns": ["value", "id", "attribute"],
                        }
                    },
                },
            },
        },
        _complex,
        "test_one",
        "id",
        key_of,
        1 / (1 + ATTRIBUTES),
        ">= 25000",
        "",
    ),
}
