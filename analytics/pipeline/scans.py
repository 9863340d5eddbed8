"""Large queries, run by the pipeline's workers beside the stages, in a pool of their own.

A request is a file, and so is its answer (`analytics.requests`). If this process dies, the next
one finds the request and runs it again.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from uuid import UUID

from analytics import requests
from analytics.models import Dataset
from analytics.pipeline.ledger import ALIAS
from analytics.pipeline.workers import Workers, WorkersLost
from analytics.places import root

logger = logging.getLogger(__name__)

POOL = "scan"
AT_ONCE = 2
#: Whoever asked has given up by then.
ABANDONED_S = 600.0


class Scans:
    """The requests that are known. `look` is called again and again."""

    def __init__(self, workers: Workers, give_up: Callable[[], None]) -> None:
        self._workers = workers
        self._give_up = give_up
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="scans")
        self._running: dict[Path, Future[None]] = {}

    @property
    def busy(self) -> bool:
        return bool(self._running)

    def look(self) -> None:
        """Begin what is asked, and end what is not wanted any more."""
        wanted = requests.waiting(root())
        for request in wanted:
            if request not in self._running and _is_ours(request):
                self._running[request] = self._threads.submit(self._run, request)
        for request in set(self._running) - set(wanted):
            if self._running[request].done():
                del self._running[request]
            elif not self._running[request].cancel():
                self._workers.cancel(request.stem)

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)

    def _run(self, request: Path) -> None:
        try:
            lines = self._workers.run(POOL, requests.tasks_of(request), group=request.stem)
        except FileNotFoundError:
            return
        except WorkersLost as lost:
            # The next process finds the request.
            logger.warning("the workers are lost: %s", lost)
            self._give_up()
            return
        except Exception as failed:
            if not request.exists():
                return
            logger.exception("a query failed: %s", request)
            lines = [json.dumps({"failed": type(failed).__name__})]
        if request.exists():
            requests.answer(request, lines)
            request.unlink(missing_ok=True)


def _is_ours(request: Path) -> bool:
    """Tell whether somebody still waits, and the dataset is one of this installation's."""
    try:
        if time.time() - request.stat().st_mtime > ABANDONED_S:
            return False
        dataset_id = UUID(request.parent.parent.name)
    except (FileNotFoundError, ValueError):
        return False
    return Dataset.unscoped.using(ALIAS).filter(pk=dataset_id).exists()
