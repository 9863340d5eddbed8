"""Writes documents as a Parquet file. Runs only in worker processes.

The files are the documents, one line of canonical Extended JSON each, and the Parquet file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from documents.transfer.parquet.value_columns import value_column
from foundation.json_types import JsonObject


def write_rows(_: JsonObject, files: Sequence[int]) -> JsonObject:
    """Write the file; return the number of its rows."""
    documents, output = files
    rows = list(_documents(documents))
    names = dict.fromkeys(name for row in rows for name in row) or {"_id": None}
    columns = [value_column([row.get(name) for row in rows]) for name in names]
    with os.fdopen(output, "wb") as file:
        pq.write_table(pa.table(columns, names=list(names)), file, compression="zstd")
    return {"rows": len(rows)}


def _documents(descriptor: int) -> Iterator[JsonObject]:
    with os.fdopen(descriptor, "rb") as file:
        for line in file:
            yield json.loads(line)
