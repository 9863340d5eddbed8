"""Where tasks run."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from analytics.pipeline.tasks import run_task

#: Tasks that run at once where there is no cluster.
AT_ONCE = 2


class WorkersLost(Exception):
    """Nothing can be run any more: the process has to begin again."""


class Workers(Protocol):
    """Runs tasks. Called by several threads at once."""

    def run(self, pool: str, tasks: Sequence[str], group: str = "") -> list[str]:
        """Run tasks, and return what each answers; raise what one of them raises."""

    def cancel(self, group: str) -> None:
        """Let the tasks of a group fail, those that run as soon as they can."""

    def rest(self) -> None:
        """Give back what is not needed until the next task."""

    def close(self) -> None:
        """End what runs."""


class ThreadWorkers:
    """Threads of this process. What takes long are steps of Arrow's, which run side by side."""

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

    def rest(self) -> None:
        """Threads that wait take nothing."""

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
