"""What a worker of `foundation.sandbox` does with a Parquet file: it reads or writes rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from documents.transfer.parquet import arrow_setup
from documents.transfer.parquet.row_reader import read_rows
from documents.transfer.parquet.row_writer import write_rows
from foundation.json_types import JsonObject

arrow_setup.load()

_TASKS: Mapping[object, Callable[[JsonObject, Sequence[int]], JsonObject]] = {
    "read": read_rows,
    "write": write_rows,
}


def work(request: JsonObject, files: Sequence[int]) -> JsonObject:
    """Do the task that the request names."""
    arrow_setup.limit_threads()
    return _TASKS[request["task"]](request, files)
