"""Has a statement executed by Spark, as a request to the pipeline, and waits for its result.

The result is a folder of Parquet files within the dataset's folder, which the worker of the
statement reads. `aclose` removes it.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from analytics import requests
from analytics.facts import DatasetFacts
from analytics.locations import root
from analytics.query.files import ReadPlan
from analytics.requests import DatasetRequest
from analytics.rows.file_store import is_remote
from analytics.sql.request import StatementRequest
from foundation.environment import environment
from foundation.errors import EvaluationFailed, QueryTooExpensive, StateExpired, Unavailable
from foundation.ids import uuid7
from foundation.json_types import JsonObject
from foundation.sandbox.problems import reported

KIND = "statement"
#: Results within a dataset's folder. The pipeline removes those that a crash leaves.
FOLDER = "results"
_POLL_S = 0.05


class Unsupported(Exception):
    """Spark does not execute the statement as DuckDB does."""


@dataclass(frozen=True, slots=True)
class SparkRows:
    """The result of a statement: files in the dataset's folder, in the order of their rows."""

    folder: Path
    paths: Sequence[str]

    async def aclose(self) -> None:
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)


def is_available(dataset: DatasetFacts) -> bool:
    """Whether this installation can execute statements on a dataset on Spark."""
    settings = environment()
    return settings.rillbase_analytics_workers == "spark" and not is_remote(dataset.folder)


def rows_read(plans: Mapping[str, ReadPlan], views: Mapping[str, Sequence[str]]) -> int:
    """Return how many rows a statement reads."""
    total = 0
    for name, plan in plans.items():
        for view in views.get(name, ("",)):
            total += sum(file.rows for file in plan.authority if file.view == view)
        total += sum(file.rows for file in plan.later)
    return total


async def run_on_spark(
    dataset: DatasetFacts, request: StatementRequest, plans: JsonObject, state: int
) -> SparkRows:
    """Execute a statement, and return its rows; cancel it if this is cancelled."""
    folder = dataset.folder
    if not isinstance(folder, Path):
        raise Unsupported("Spark reads no object store.")
    name = str(uuid7())
    rows = SparkRows(folder / FOLDER / name, ())
    task = {
        "kind": KIND,
        "sql": request.sql,
        "parameters": request.parameters,
        "definition": dataset.definition,
        "plans": plans,
        "state": state,
        "limit": request.limit,
        "timeout_s": request.timeout_s,
        "folder": str(folder),
        "target": str(rows.folder),
    }
    pending = await asyncio.to_thread(_submit, dataset, name, json.dumps(task))
    try:
        lines = await _answer(pending, request.timeout_s)
        paths = _paths(json.loads(lines[0]))
    except BaseException:
        await asyncio.shield(asyncio.to_thread(pending.delete))
        await asyncio.shield(rows.aclose())
        raise
    await asyncio.to_thread(pending.delete)
    return SparkRows(rows.folder, [f"{FOLDER}/{name}/{path}" for path in paths])


def _submit(dataset: DatasetFacts, name: str, task: str) -> DatasetRequest:
    return requests.submit(requests.folder_for(root(), dataset.id), name, [task])


async def _answer(pending: DatasetRequest, timeout_s: float) -> list[str]:
    try:
        async with asyncio.timeout(timeout_s):
            # The answer is a file of another process.
            while (lines := await asyncio.to_thread(requests.answered, pending)) is None:  # noqa: ASYNC110
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        raise QueryTooExpensive("The statement takes longer than its timeout.") from None
    return lines


def _paths(result: JsonObject) -> list[str]:
    """Return the files of a result, or raise what happened instead."""
    if "unsupported" in result:
        raise Unsupported(str(result["unsupported"]))
    if "problem" in result:
        raise reported(result["problem"], (EvaluationFailed, QueryTooExpensive))
    if "gone" in result:
        raise StateExpired("The files of this state are no longer retained.")
    files = result.get("files")
    if not isinstance(files, list):
        raise Unavailable("Spark cannot execute the statement at the moment.")
    return [str(file) for file in files]
