"""Analytics tables while workers, Spark's driver and the coordinator are killed at random.

One thread uploads random rows to tables that share ID-keys and keeps, for each upload, what a
serial model has then. Others ask at every freshness, and whatever state an answer names, it has to
be the model's. RILLBASE_CHAOS_KILLS says how many processes are killed, RILLBASE_CHAOS_SEED which.
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

from tests.analytics.made import make_dataset
from tests.analytics.processes import START_TIMEOUT_S, drivers_of, kill, pipeline, workers_of
from tests.analytics.test_id_keys import WEB, Model, by_key, check, random_line, send
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    from tests.analytics.made import Made

KILLS = int(os.environ.get("RILLBASE_CHAOS_KILLS", "24"))
FRESHNESSES: tuple[object, ...] = (0, 0, 1, 3, 10, "any")
READERS = 2
#: Between uploads, so that a run's states fit into memory.
PAUSE_S = 0.03
#: For how long a process works before something of it is killed.
WORKS_S = (1.0, 6.0)

pytestmark = [pytest.mark.long, pytest.mark.timeout(KILLS * 60 + 600)]


class Story:
    """What was uploaded, and what should not have been seen."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        #: By the number of the upload that leaves it.
        self.states = [Model()]
        self.acknowledged = 0
        self.answers = 0
        self.faults: list[str] = []


class Busy:
    """Threads that do something again and again until the block ends, or there is a fault."""

    def __init__(self, story: Story, *works: Callable[[], None]) -> None:
        self._story = story
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
        while not self._over.is_set() and not self._story.faults:
            try:
                work()
            except Exception as failed:  # noqa: BLE001 -- whatever it is, the test tells of it
                self._story.faults.append(f"{type(failed).__name__}: {failed}")


class Writer:
    """Uploads random rows."""

    def __init__(self, web: Made, story: Story) -> None:
        self._web, self._story = web, story
        self._rng = Random(f"{story.seed} writer")

    def __call__(self) -> None:
        model = self._story.states[-1].copy()
        lines = [random_line(self._rng) for _ in range(self._rng.randrange(1, 8))]
        model.do(lines)
        # A reader may see it before the answer is here.
        self._story.states.append(model)
        send(self._web, lines)
        self._story.acknowledged += 1
        time.sleep(PAUSE_S)


class Reader:
    """Asks at a freshness, then again at the state of the answer, and never goes back."""

    def __init__(self, web: Made, story: Story, number: int) -> None:
        self._web, self._story = web, story
        self._rng = Random(f"{story.seed} reader {number}")
        self._state = 0

    def __call__(self) -> None:
        freshness = self._rng.choice(FRESHNESSES)
        acknowledged = self._story.acknowledged
        table = self._rng.choice(list(WEB["tables"]))
        answer = self._web.query(table, freshness=freshness, since=self._state)
        state: int = answer["state"]
        assert state >= self._state, f"from state {self._state} back to {state}"
        if freshness == 0:
            assert state >= acknowledged, f"{acknowledged} were acknowledged, {state} seen"
        if isinstance(freshness, int):
            assert answer["freshness_s"] <= freshness, answer["freshness_s"]
        expected = self._story.states[state].rows.rows(table)
        assert by_key(table, answer["rows"]) == expected, (table, freshness, state)
        check(self._web, self._story.states, self._rng, state=state)
        self._state = state
        self._story.answers += 1


def has_all(web: Made, story: Story) -> None:
    uploads = story.acknowledged
    wait_until(
        lambda: web.query("links", freshness="any")["state"] >= uploads or bool(story.faults),
        what="the authority to have every upload",
        timeout_s=START_TIMEOUT_S,
    )


def nothing(_: psutil.Process) -> Sequence[psutil.Process]:
    return ()


#: What is killed first; then whatever is left of the process, coordinator and all, is.
VICTIMS = (workers_of, workers_of, drivers_of, nothing)


@pytest.mark.parametrize("workers", ["spark", "threads"])
def test_every_answer_is_the_serial_models_whatever_is_killed(
    server: str, tmp_path: Path, workers: str
) -> None:
    story = Story(int(os.environ.get("RILLBASE_CHAOS_SEED", secrets.randbelow(10**6))))
    web, rng, killed = make_dataset(server, **WEB), Random(story.seed), 0
    print(f"RILLBASE_CHAOS_SEED={story.seed}")  # noqa: T201 -- to do it again
    with ExitStack() as working:
        readers = [Reader(web, story, number) for number in range(READERS)]
        working.enter_context(Busy(story, Writer(web, story), *readers))
        while killed < KILLS and not story.faults:
            with pipeline(workers, tmp_path / "pipeline.log") as process:
                has_all(web, story)
                for victims in rng.choices(VICTIMS, k=3):
                    time.sleep(rng.uniform(*WORKS_S))
                    found = victims(process)
                    kill(found)
                    killed += bool(found)
            killed += 1
    with pipeline(workers, tmp_path / "pipeline.log"):
        has_all(web, story)
        for freshness in ("any", 0):
            check(web, story.states, rng, freshness=freshness)
    assert not story.faults, story.faults
    assert story.answers > KILLS
