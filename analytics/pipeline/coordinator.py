"""The loop that moves datasets through the stages. One process leads; the others stand by.

It reads the state, decides (`decisions`), and starts steps in threads, which wait for the workers.
All of its state can be read again from PostgreSQL: if it is killed, its successor continues from
there.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

import psycopg
from django.db import DatabaseError, connections

from analytics.definitions.removal import remove_files
from analytics.pipeline import ledger
from analytics.pipeline.catalogue import UNAVAILABLE, Authority, open_catalogue
from analytics.pipeline.decisions import BatchLimits, PipelineStep, PlannedStep, decide
from analytics.pipeline.housekeeping import Housekeeping
from analytics.pipeline.ledger import PipelineDataset, StepSuperseded
from analytics.pipeline.scans import ScanRunner
from analytics.pipeline.steps import run_step, tag
from analytics.pipeline.workers import Workers, WorkersLost
from foundation import metrics
from foundation.environment import environment
from foundation.lead import Lead

logger = logging.getLogger(__name__)

ROUND_S = 0.1
#: Pause of a dataset after a failed step, and of all datasets after a failed round.
PAUSE_S = 5.0
#: Steps of one stage, over all datasets.
STEPS_AT_ONCE = 2
#: Workers are stopped after being idle for this long.
RELEASE_AFTER_S = 60.0
_UNAVAILABLE = (psycopg.Error, DatabaseError, UNAVAILABLE)


@dataclass
class _Work:
    """The work in progress for one dataset."""

    steps: dict[PlannedStep, Future[None]] = field(default_factory=dict)
    paused_until_s: float = 0.0
    #: The age of the oldest unsorted upload.
    unsorted_s: float = 0.0


class Coordinator:
    """A background thread. It calls `on_workers_lost` when the workers are lost."""

    def __init__(self, workers: Workers, on_workers_lost: Callable[[], None]) -> None:
        self._workers = workers
        self._on_workers_lost = on_workers_lost
        self._lead = Lead("pipeline")
        # Each stage has separate threads, so that long steps of one do not delay the others.
        self._threads = {
            step: ThreadPoolExecutor(STEPS_AT_ONCE, thread_name_prefix=step)
            for step in PipelineStep
        }
        self._work: dict[UUID, _Work] = {}
        self._scans = ScanRunner(workers, on_workers_lost)
        self._housekeeping = Housekeeping()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="pipeline", daemon=True)
        self._has_checked = False
        self._leading = False
        self._busy_s = time.monotonic()

    @property
    def ready(self) -> bool:
        """Whether this process leads, or is ready to take over."""
        return self._has_checked

    def status(self) -> dict[str, object]:
        """Return the status, for operators and probes."""
        return {
            "leading": self._leading,
            "steps": [
                {
                    "dataset": str(key),
                    "step": planned.step,
                    "first": planned.first,
                    "last": planned.last,
                }
                for key, work in list(self._work.items())
                for planned in list(work.steps)
            ],
        }

    async def start(self) -> None:
        self._thread.start()

    async def stop(self) -> None:
        await asyncio.to_thread(self.end)

    def end(self) -> None:
        """Start no more steps, finish those in progress, and give up leadership."""
        self._stopping.set()
        self._thread.join()
        self._lead.end()
        self._workers.close()
        self._scans.close()
        self._housekeeping.close()
        for threads in self._threads.values():
            threads.shutdown(cancel_futures=True)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._round()
                self._has_checked = True
            except _UNAVAILABLE as error:
                logger.warning("the pipeline is paused: %s", error)
                self._leading = False
            except Exception:
                # Catch everything: if this thread ended, no work would be started.
                logger.exception("a round failed")
                self._stopping.wait(PAUSE_S)
            finally:
                metrics.PIPELINE_LEADING.set(self._leading)
                connections[ledger.ALIAS].close()
            self._stopping.wait(ROUND_S)

    def _round(self) -> None:
        if not self._lead.take():
            self._leading = False
            return
        if not self._leading:
            ledger.take_over()
            self._leading = True
            for dataset_id in ledger.untagged():
                self._work.setdefault(dataset_id, _Work())
        for dataset_id in {*ledger.datasets_with_work(), *self._work}:
            self._start_due_steps(dataset_id)
        self._scans.poll()
        self._housekeeping.poll()
        metrics.PIPELINE_LAG.set(max((w.unsorted_s for w in self._work.values()), default=0.0))
        if self._work or self._scans.busy:
            self._busy_s = time.monotonic()
        elif time.monotonic() - self._busy_s > RELEASE_AFTER_S:
            self._workers.release()
            self._busy_s = time.monotonic()

    def _start_due_steps(self, dataset_id: UUID) -> None:
        """Start the due steps of a dataset."""
        work = self._work.setdefault(dataset_id, _Work())
        work.steps = {w: f for w, f in work.steps.items() if not f.done()}
        if time.monotonic() < work.paused_until_s:
            return
        dataset = ledger.find_dataset(dataset_id)
        if dataset is None:
            self._remove_output(dataset_id, work)
            return
        if not work.steps and not _has_work(dataset):
            self._work.pop(dataset_id)
            return
        work.unsorted_s = _unsorted_s(dataset)
        with self._handle_failures(dataset_id, work, "tag"):
            self._adopt(dataset)
            for planned in decide(dataset.now, _limits(), list(work.steps)):
                step = self._threads[planned.step].submit(self._step, dataset, planned, work)
                work.steps[planned] = step

    def _remove_output(self, dataset_id: UUID, work: _Work) -> None:
        """Remove the output of steps that were running when their dataset was dropped."""
        work.unsorted_s = 0.0
        if not work.steps:
            with self._handle_failures(dataset_id, work, "remove"):
                remove_files(dataset_id)
                self._work.pop(dataset_id)

    def _step(self, dataset: PipelineDataset, planned: PlannedStep, work: _Work) -> None:
        begin = time.monotonic()
        with self._handle_failures(dataset.id, work, planned.step):
            rows = run_step(self._workers, _authority(dataset.id), dataset, planned)
            metrics.PIPELINE_STEPS.labels(planned.step).observe(time.monotonic() - begin)
            metrics.PIPELINE_ROWS.labels(planned.step).inc(rows)
        connections[ledger.ALIAS].close()

    @contextmanager
    def _handle_failures(self, dataset_id: UUID, work: _Work, action: str) -> Iterator[None]:
        """Retry a dataset's failures later, without holding up the others."""
        try:
            yield
        except StepSuperseded:
            logger.info("a step was superseded: %s %s", dataset_id, action)
        except WorkersLost as error:
            logger.warning("the workers were lost: %s", error)
            self._on_workers_lost()
        except _UNAVAILABLE as error:
            logger.warning("a step is postponed: %s", error)
            work.paused_until_s = time.monotonic() + PAUSE_S
        except Exception as error:
            logger.exception("a step failed: %s %s", dataset_id, action)
            work.paused_until_s = time.monotonic() + PAUSE_S
            metrics.PIPELINE_FAILURES.labels(action).inc()
            ledger.note_failure(dataset_id, f"{action}: {_summary(error)}")

    def _adopt(self, dataset: PipelineDataset) -> None:
        """Tag a committed state if the process that committed it died before tagging it."""
        run = dataset.authority
        if run is not None and not run.tagged and not self._is_entering(dataset.id):
            tag(_authority(dataset.id), run)
            ledger.note_failure(dataset.id, "")

    def _is_entering(self, dataset_id: UUID) -> bool:
        return any(w.step == "authority" for w in self._work[dataset_id].steps)


def _has_work(dataset: PipelineDataset) -> bool:
    authority = dataset.authority
    return bool(dataset.now.runs or dataset.now.remapped or dataset.now.waiting) or (
        authority is not None and not authority.tagged
    )


def _unsorted_s(dataset: PipelineDataset) -> float:
    now = dataset.now
    times = [run.first_at for run in now.remapped] + [upload.at for upload in now.waiting]
    return (now.at - times[0]).total_seconds() if times else 0.0


def _authority(dataset_id: UUID) -> Authority:
    return Authority(open_catalogue(), dataset_id)


def _limits() -> BatchLimits:
    settings = environment()
    return BatchLimits(
        settings.rillbase_analytics_batch_bytes,
        settings.rillbase_analytics_batch_age_s,
        settings.rillbase_analytics_authority_age_s,
    )


def _summary(error: Exception) -> str:
    """Return the one line that names the error, even from a Java stack trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    messages = [line for line in lines if "Error: " in line or "Exception: " in line]
    return (messages or lines or [type(error).__name__])[-1][:500]
