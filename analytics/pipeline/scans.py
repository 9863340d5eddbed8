"""Runs large queries on the pipeline's workers, in a pool separate from the stages', and SQL
statements by the driver for these.

A request is a file, and so is its answer (`analytics.requests`). If this process dies, the next
one finds the request and runs it again.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
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
from analytics.sql.worker_pools import MAX_WAITING
from foundation.json_types import JsonObject
from foundation.sandbox.fair_queue import FairQueue, QueueFull

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
        #: The tenants of the statements that run or wait. Each leaves a place to the others.
        self._tenants: dict[DatasetRequest, str] = {}
        self._queue: FairQueue[DatasetRequest] = FairQueue(STATEMENTS_AT_ONCE, MAX_WAITING)
        self._polled_s = -FAR_POLL_S

    @property
    def busy(self) -> bool:
        return bool(self._running or self._tenants)

    def poll(self) -> None:
        """Start new requests, and cancel those that have been withdrawn."""
        now = time.monotonic()
        if is_remote(root()) and now - self._polled_s < FAR_POLL_S:
            return
        self._polled_s = now
        requested = dict(requests.pending(root()))
        for request, written_s in requested.items():
            if request in self._running or request in self._tenants:
                continue
            if (tenant := _tenant_here(request, written_s)) is not None:
                self._start(request, tenant)
        self._withdraw({*self._running, *self._tenants} - requested.keys())
        while (following := self._queue.start_next()) is not None:
            self._running[following] = self._statements.submit(self._execute, following)
        self._driver.stop_if_idle()

    def _withdraw(self, absent: Collection[DatasetRequest]) -> None:
        """Free the places of what is answered, and cancel what has been withdrawn."""
        for request in absent:
            future = self._running.get(request)
            if future is None:
                self._queue.withdraw(self._tenants.pop(request), request)
            elif future.done():
                del self._running[request]
                if request in self._tenants:
                    self._queue.finish(self._tenants.pop(request))
            elif not future.cancel():
                self._workers.cancel(request.name)
                self._driver.cancel(request.name)

    def close(self) -> None:
        self._driver.close()
        self._threads.shutdown(cancel_futures=True)
        self._statements.shutdown(cancel_futures=True)

    def _start(self, request: DatasetRequest, tenant: str) -> None:
        """Start a query, or queue a statement."""
        tasks = _tasks_of(request)
        if not tasks or json.loads(tasks[0]).get("kind") != KIND:
            self._running[request] = self._threads.submit(self._run, request)
            return
        # A tenant with too many waits for the next poll.
        with suppress(QueueFull):
            self._queue.add(tenant, request)
            self._tenants[request] = tenant

    def _execute(self, request: DatasetRequest) -> None:
        """Execute a SQL statement."""
        tasks = _tasks_of(request)
        if not tasks:
            return
        statement: dict[str, Any] = json.loads(tasks[0])
        del statement["kind"]
        timeout_s = statement.pop("timeout_s")
        result: JsonObject = {}
        until_s = time.monotonic() + timeout_s
        for _ in range(STATEMENT_ATTEMPTS):
            if not request.is_pending:
                return
            if time.monotonic() > until_s:
                # The caller has gone.
                break
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


def _tasks_of(request: DatasetRequest) -> list[str]:
    """Return the tasks of a request, or none if it has been withdrawn."""
    try:
        return requests.tasks_of(request)
    except FileNotFoundError:
        return []


def _tenant_here(request: DatasetRequest, written_s: float) -> str | None:
    """Return the tenant of a request if its caller still waits and its dataset is one of here."""
    if time.time() - written_s > ABANDONED_S:
        return None
    try:
        dataset_id = UUID(request.dataset)
    except ValueError:
        return None
    datasets = Dataset.unscoped.using(ALIAS).filter(pk=dataset_id)
    tenant_id = datasets.values_list("tenant_id", flat=True).first()
    return None if tenant_id is None else str(tenant_id)
