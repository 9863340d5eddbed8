"""Kills processes of an analytics pipeline while pairs of rows pass through it, and checks the
results.

Each upload writes the same keys to two tables, one with the upload's number as value, the other
with its negative. So the sum over both is zero in every state, and there are as many rows as keys.
Keys are stored as ids, so that every stage has work: workers are killed during each stage in turn,
then Spark's driver, then the coordinator.
"""

from __future__ import annotations

import json
import random
import time
import urllib.request
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from itertools import count, cycle

import psutil
import pyarrow as pa

from benchmarks.support.dataset_client import FRESHNESSES, BackgroundLoop, Client
from benchmarks.support.installation import Web
from benchmarks.support.uploads import stream

ROWS = 2_000
#: How long processes run before a kill, and after that of their workers.
WORKED_S = (1.0, 4.0)
DEADLINE_S = 300.0
#: A stage without work for so long, because another one did all of it, is skipped.
STAGE_S = 20.0
_PAUSE_S = 0.05
#: How often running stages are polled: they are short.
_LOOK_S = 0.002
_TABLE = {"columns": {"id": "id:pair", "number": "int64"}, "key": ["id"]}
_COORDINATOR = "the coordinator"
_STAGES = ("remap", "sort", "merge", "authority")
_SUM = {"sum": {"op": "sum", "column": "number"}, "rows": {"op": "count"}}

#: Kills a process of a pipeline, and returns its name.
Victim = Callable[[Web], str]
Pipeline = Callable[[], AbstractContextManager[Web]]


@dataclass
class KillResults:
    """What was killed, and what was observed meanwhile and afterwards."""

    kills: dict[str, int] = field(default_factory=dict)
    answers: int = 0
    #: Answers whose sum was not zero, and those of a state before the last one that was seen.
    sums: int = 0
    back: int = 0
    lost: int = 0
    doubled: int = 0


def kill_again_and_again(client: Client, pipeline: Pipeline, kills: int) -> KillResults:
    """Upload and read pairs while processes are killed; then wait until the pipeline is idle."""
    tables = {"plus": _TABLE, "minus": _TABLE}
    client.make_dataset("pairs", {"tables": tables, "id_keys": {"pair": "int64"}})
    killed, rng = KillResults(), random.Random(3)
    kinds: list[Victim] = [*(partial(_workers, stage) for stage in _STAGES), _driver, _coordinator]
    victims = cycle(kinds)
    with _PairWriter(client.again()) as writing, _PairReader(client.again(), killed) as reading:
        while sum(killed.kills.values()) < kills:
            with pipeline() as running:
                _wait(client, writing.uploads)
                while sum(killed.kills.values()) < kills and running.process.is_running():
                    time.sleep(rng.uniform(*WORKED_S))
                    name = next(victims)(running)
                    killed.kills[name] = killed.kills.get(name, 0) + 1
                    writing.check()
                    reading.check()
                    if name == _COORDINATOR:
                        break
    with pipeline():
        _wait(client, writing.uploads)
    for table in tables:
        _count(client, table, killed)
    client.drop_dataset()
    return killed


class _PairWriter(BackgroundLoop):
    """Uploads pairs, one upload after the other."""

    def __init__(self, client: Client) -> None:
        super().__init__(_PAUSE_S)
        self._client = client
        self._numbers = count(1)
        self.uploads = 0

    def do(self) -> None:
        number, ids = next(self._numbers), list(range(ROWS))
        parts = [
            stream(table, pa.table({"id": ids, "number": [sign * number] * ROWS}))
            for table, sign in (("plus", 1), ("minus", -1))
        ]
        self._client.upload(b"".join(parts))
        self.uploads = number


class _PairReader(BackgroundLoop):
    """Queries the sum at one freshness after the other."""

    def __init__(self, client: Client, killed: KillResults) -> None:
        super().__init__(_PAUSE_S)
        self._client, self._killed = client, killed
        self._freshnesses = cycle(FRESHNESSES)
        self._state = 0

    def do(self) -> None:
        freshness, before = next(self._freshnesses), self._state
        query = {"group_by": [], "aggregates": _SUM}
        answer = self._client.query("plus", **query, freshness=freshness, since=before)
        self._state = answer["state"]
        other = self._client.query("minus", **query, state=self._state)
        plus, minus = (one["rows"][0] for one in (answer, other))
        self._killed.answers += 1
        self._killed.back += self._state < before
        agree = (plus["sum"] or 0) + (minus["sum"] or 0) == 0 and plus["rows"] == minus["rows"]
        self._killed.sums += not agree


def _workers(stage: str, running: Web) -> str:
    """Kill the processes that run Spark's tasks during a stage."""
    workers = [c for c in _below(running) if "pyspark.daemon" in _line(c)]
    if not workers:
        return _coordinator(running)
    deadline = time.monotonic() + STAGE_S
    while not (comes := stage in _under_way(running)) and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
    _kill(workers)
    return f"workers in {stage}" if comes else "workers"


def _driver(running: Web) -> str:
    """Kill Spark's driver, without which the coordinator ends."""
    drivers = [c for c in _below(running) if "SparkSubmit" in _line(c)]
    if not drivers:
        return _coordinator(running)
    _kill(drivers)
    running.process.wait(DEADLINE_S)
    return "Spark's driver"


def _coordinator(running: Web) -> str:
    running.process.kill()
    return _COORDINATOR


def _under_way(running: Web) -> set[str]:
    with urllib.request.urlopen(f"http://127.0.0.1:{running.port}/status") as answer:
        return {step["step"] for step in json.load(answer)["steps"]}


def _below(running: Web) -> list[psutil.Process]:
    return running.process.children(recursive=True)


def _line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def _kill(processes: Sequence[psutil.Process]) -> None:
    for process in processes:
        if process.is_running():
            process.kill()


def _wait(client: Client, uploads: int) -> None:
    """Wait until the authority contains every upload."""
    deadline = time.monotonic() + DEADLINE_S
    while client.call("GET", "pipeline")["authority_state"] < uploads:
        if time.monotonic() > deadline:
            raise RuntimeError("the authority does not contain every upload")
        time.sleep(_PAUSE_S)


def _count(client: Client, table: str, killed: KillResults) -> None:
    """Count the keys that the authority lacks, and those that it contains more than once."""
    rows = client.query(table, columns=["id"], limit=10_000, freshness="any")["rows"]
    keys = [row["id"] for row in rows]
    killed.lost += len(set(range(ROWS)) - set(keys))
    killed.doubled += len(keys) - len(set(keys))
