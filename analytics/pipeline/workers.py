"""Where tasks run."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from analytics.pipeline.tasks import run_task

#: Concurrent tasks without a cluster.
AT_ONCE = 2


class WorkersLost(Exception):
    """The workers are lost, and the process has to restart."""


class Workers(Protocol):
    """Runs tasks. Called by several threads concurrently."""

    def run(self, pool: str, tasks: Sequence[str], group: str = "") -> list[str]:
        """Run tasks and return their results, or raise the exception of the first that fails."""

    def cancel(self, group: str) -> None:
        """Make the tasks of a group fail, running ones as soon as possible."""

    def release(self) -> None:
        """Release what is not needed until the next task."""

    def close(self) -> None:
        """Stop everything."""


class ThreadWorkers:
    """Threads of this process. The time goes to Arrow calls, which run in parallel."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="stages")
        self._groups: dict[str, list[Future[str]]] = {}

    def run(self, pool: str, tasks: Sequence[str], group: str = "") -> list[str]:
        futures = [self._threads.submit(run_task, task) for task in tasks]
        if group:
            self._groups[group] = futures
        try:
            return [future.result() for future in futures]
        finally:
            self._groups.pop(group, None)

    def cancel(self, group: str) -> None:
        for future in self._groups.get(group, ()):
            future.cancel()

    def release(self) -> None:
        """Do nothing: idle threads need no resources."""

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
