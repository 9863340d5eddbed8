"""Periodic removal of files and states that are no longer needed.

A store may take long to remove many files, so this has a separate thread. Failures of one dataset
are retried with the next pass and do not hold up the others.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from uuid import UUID

import psycopg
from django.db import DatabaseError, connections

from analytics.models import Dataset
from analytics.pipeline import ledger
from analytics.pipeline.catalogue import Authority, open_catalogue
from analytics.pipeline.collector import collect, datasets_with_leftovers, sweep
from foundation import metrics

logger = logging.getLogger(__name__)

#: How often files are collected, and how often unreferenced files are searched for.
COLLECT_S, SWEEP_S = 5.0, 3600.0


class Housekeeping:
    """Maintains all datasets. `poll` is called repeatedly by the leader."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="housekeeping")
        self._running: Future[None] | None = None
        self._collected_s = self._swept_s = -SWEEP_S

    def poll(self) -> None:
        """Start what is due, unless the last pass is still running."""
        now = time.monotonic()
        if now - self._collected_s < COLLECT_S or (self._running and not self._running.done()):
            return
        sweeps = now - self._swept_s >= SWEEP_S
        self._collected_s = now
        self._swept_s = now if sweeps else self._swept_s
        self._running = self._threads.submit(_maintain, sweeps=sweeps)

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)


def _maintain(*, sweeps: bool) -> None:
    try:
        metrics.PIPELINE_STUCK.set(ledger.count_stuck())
        _run_for_each(
            datasets_with_leftovers(),
            lambda key: collect(Authority(open_catalogue(), key), key),
        )
        if sweeps:
            dataset_ids = Dataset.unscoped.using(ledger.ALIAS).values_list("pk", flat=True)
            _run_for_each(
                list(dataset_ids),
                lambda key: sweep(Authority(open_catalogue(), key), key),
            )
    except (psycopg.Error, DatabaseError) as error:
        logger.warning("housekeeping is postponed: %s", error)
    finally:
        connections[ledger.ALIAS].close()


def _run_for_each(datasets: Iterable[UUID], maintain: Callable[[UUID], object]) -> None:
    for dataset_id in datasets:
        try:
            maintain(dataset_id)
        except (psycopg.Error, DatabaseError):
            raise
        except Exception:
            logger.exception("a dataset's leftover files remain for now: %s", dataset_id)
