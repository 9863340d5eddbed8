"""Runs large queries on the pipeline's workers, in a pool separate from the stages', and SQL
statements by the driver for these.

A request is a file, and so is its answer (`analytics.requests`). If this process dies, the next
one finds the request and runs it again.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from uuid import UUID

from analytics import requests
from analytics.locations import root
from analytics.models import Dataset
from analytics.pipeline.ledger import ALIAS
from analytics.pipeline.workers import Workers, WorkersLost
from analytics.requests import DatasetRequest
from analytics.rows.file_store import is_remote
from analytics.sql.spark.driver_process import DriverFailure, DriverProcess
from analytics.sql.spark.remote_run import KIND
from foundation.json_types import JsonObject

logger = logging.getLogger(__name__)

POOL = "scan"
AT_ONCE = 2
STATEMENTS_AT_ONCE, STATEMENT_ATTEMPTS = 4, 2
#: Age at which a request is ignored: its caller has given up.
ABANDONED_S = 600.0
#: Polling interval in an object store, which charges for each request.
FAR_POLL_S = 0.5


class ScanRunner:
    """The pending requests. `poll` is called repeatedly."""

    def __init__(self, workers: Workers, on_workers_lost: Callable[[], None]) -> None:
        self._workers = workers
        self._on_workers_lost = on_workers_lost
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="scans")
        self._statements = ThreadPoolExecutor(STATEMENTS_AT_ONCE, thread_name_prefix="statements")
        self._driver = DriverProcess()
        self._running: dict[DatasetRequest, Future[None]] = {}
        self._polled_s = -FAR_POLL_S

    @property
    def busy(self) -> bool:
        return bool(self._running)

    def poll(self) -> None:
        """Start new requests, and cancel those that have been withdrawn."""
        now = time.monotonic()
        if is_remote(root()) and now - self._polled_s < FAR_POLL_S:
            return
        self._polled_s = now
        requested = dict(requests.pending(root()))
        for request, written_s in requested.items():
            if request not in self._running and _is_pending_here(request, written_s):
                self._running[request] = self._start(request)
        for request in set(self._running) - set(requested):
            if self._running[request].done():
                del self._running[request]
            elif not self._running[request].cancel():
                self._workers.cancel(request.name)
                self._driver.cancel(request.name)
        self._driver.stop_if_idle()

    def close(self) -> None:
        self._driver.close()
        self._threads.shutdown(cancel_futures=True)
        self._statements.shutdown(cancel_futures=True)

    def _start(self, request: DatasetRequest) -> Future[None]:
        try:
            tasks = requests.tasks_of(request)
        except FileNotFoundError:
            tasks = []
        first = json.loads(tasks[0]) if tasks else {}
        if first.get("kind") == KIND:
            return self._statements.submit(self._execute, request, first)
        return self._threads.submit(self._run, request)

    def _execute(self, request: DatasetRequest, statement: dict[str, Any]) -> None:
        """Execute a SQL statement."""
        del statement["kind"]
        timeout_s = statement.pop("timeout_s")
        result: JsonObject = {}
        for _ in range(STATEMENT_ATTEMPTS):
            if not request.is_pending:
                return
            try:
                result = self._driver.run(request.name, statement, timeout_s)
                break
            except DriverFailure as error:
                # Another tenant's statement may be the reason.
                logger.warning("Spark's driver was lost: %s", error)
        _answer(request, [json.dumps(result)])

    def _run(self, request: DatasetRequest) -> None:
        try:
            lines = self._workers.run(POOL, requests.tasks_of(request), group=request.name)
        except FileNotFoundError:
            return
        except WorkersLost as error:
            # The next process will find the request and run it.
            logger.warning("the workers were lost: %s", error)
            self._on_workers_lost()
            return
        except Exception as error:
            if not request.is_pending:
                return
            logger.exception("a query failed: %s", request)
            lines = [json.dumps({"failed": type(error).__name__})]
        _answer(request, lines)


def _answer(request: DatasetRequest, lines: Sequence[str]) -> None:
    """Answer a request, unless it has been withdrawn."""
    if request.is_pending:
        requests.answer(request, lines)
        request.delete()


def _is_pending_here(request: DatasetRequest, written_s: float) -> bool:
    """Return whether the caller is still waiting, and the dataset belongs to this installation."""
    if time.time() - written_s > ABANDONED_S:
        return False
    try:
        dataset_id = UUID(request.dataset)
    except ValueError:
        return False
    return Dataset.unscoped.using(ALIAS).filter(pk=dataset_id).exists()
