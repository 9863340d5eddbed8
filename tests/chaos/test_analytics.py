"""Analytics tables while workers, Spark's driver and the coordinator are killed at random.

One thread uploads random rows to tables that share ID-keys, and records the state of a serial model
after each upload. Others query at every freshness; a result must equal the model at the state that
it names. RILLBASE_CHAOS_KILLS is the number of processes that are killed; RILLBASE_CHAOS_SEED
selects them.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from random import Random
from typing import TYPE_CHECKING, Self

import psutil
import pytest

from tests.analytics.dataset_client import make_dataset
from tests.analytics.processes import START_TIMEOUT_S, drivers_of, kill, pipeline, workers_of
from tests.analytics.test_id_keys import WEB, Model, by_key, check, random_line, send
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from tests.analytics.dataset_client import DatasetClient

KILLS = int(os.environ.get("RILLBASE_CHAOS_KILLS", "24"))
FRESHNESSES: tuple[object, ...] = (0, 0, 1, 3, 10, "any")
READERS = 2
#: The pause between uploads, so that all states of a run fit into memory.
PAUSE_S = 0.03
#: How long a process runs before a part of it is killed.
WORKS_S = (1.0, 6.0)

pytestmark = [pytest.mark.long, pytest.mark.timeout(KILLS * 60 + 600)]


class UploadHistory:
    """The uploads, and the violations that were observed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        #: The state after each upload, by the upload's number.
        self.states = [Model()]
        self.acknowledged = 0
        self.answers = 0
        self.faults: list[str] = []


class BackgroundThreads:
    """Threads that repeat an action until the block ends or a violation is found."""

    def __init__(self, history: UploadHistory, *works: Callable[[], None]) -> None:
        self._history = history
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(work,)) for work in works]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _run(self, work: Callable[[], None]) -> None:
        while not self._over.is_set() and not self._history.faults:
            try:
                work()
            except Exception as failed:  # noqa: BLE001 -- whatever it is, the test tells of it
                self._history.faults.append(f"{type(failed).__name__}: {failed}")


class Writer:
    """Uploads random rows."""

    def __init__(self, web: DatasetClient, history: UploadHistory) -> None:
        self._web, self._history = web, history
        self._rng = Random(f"{history.seed} writer")

    def __call__(self) -> None:
        model = self._history.states[-1].copy()
        lines = [random_line(self._rng) for _ in range(self._rng.randrange(1, 8))]
        model.do(lines)
        # A reader may see it before the response arrives.
        self._history.states.append(model)
        send(self._web, lines)
        self._history.acknowledged += 1
        time.sleep(PAUSE_S)


class Reader:
    """Queries at a freshness, then again at the state of that result; states never decrease."""

    def __init__(self, web: DatasetClient, history: UploadHistory, number: int) -> None:
        self._web, self._history = web, history
        self._rng = Random(f"{history.seed} reader {number}")
        self._state = 0

    def __call__(self) -> None:
        freshness = self._rng.choice(FRESHNESSES)
        acknowledged = self._history.acknowledged
        table = self._rng.choice(list(WEB["tables"]))
        answer = self._web.query(table, freshness=freshness, since=self._state)
        state: int = answer["state"]
        assert state >= self._state, f"from state {self._state} back to {state}"
        if freshness == 0:
            assert state >= acknowledged, f"{acknowledged} were acknowledged, {state} seen"
        if isinstance(freshness, int):
            assert answer["freshness_s"] <= freshness, answer["freshness_s"]
        expected = self._history.states[state].rows.rows(table)
        assert by_key(table, answer["rows"]) == expected, (table, freshness, state)
        check(self._web, self._history.states, self._rng, state=state)
        self._state = state
        self._history.answers += 1


def has_all(web: DatasetClient, history: UploadHistory) -> None:
    uploads = history.acknowledged
    wait_until(
        lambda: web.query("links", freshness="any")["state"] >= uploads or bool(history.faults),
        what="the authority to have every upload",
        timeout_s=START_TIMEOUT_S,
    )


def nothing(_: psutil.Process) -> Sequence[psutil.Process]:
    return ()


#: What is killed first; then the rest of the process is killed, including the coordinator.
VICTIMS = (workers_of, workers_of, drivers_of, nothing)


@pytest.mark.parametrize("workers", ["spark", "threads"])
def test_every_answer_is_the_serial_models_whatever_is_killed(
    server: str, tmp_path: Path, workers: str
) -> None:
    history = UploadHistory(int(os.environ.get("RILLBASE_CHAOS_SEED", secrets.randbelow(10**6))))
    web, rng, killed = make_dataset(server, **WEB), Random(history.seed), 0
    print(f"RILLBASE_CHAOS_SEED={history.seed}")  # noqa: T201 -- to do it again
    with ExitStack() as working:
        readers = [Reader(web, history, number) for number in range(READERS)]
        working.enter_context(BackgroundThreads(history, Writer(web, history), *readers))
        while killed < KILLS and not history.faults:
            with pipeline(workers, tmp_path / "pipeline.log") as process:
                has_all(web, history)
                for victims in rng.choices(VICTIMS, k=3):
                    time.sleep(rng.uniform(*WORKS_S))
                    result = victims(process)
                    kill(result)
                    killed += bool(result)
            killed += 1
    with pipeline(workers, tmp_path / "pipeline.log"):
        has_all(web, history)
        for freshness in ("any", 0):
            check(web, history.states, rng, freshness=freshness)
    assert not history.faults, history.faults
    assert history.answers > KILLS
