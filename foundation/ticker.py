"""A thread that runs a function periodically, started when it is first needed.

It writes what is collected in memory. A process that forks (a web server or a worker) must not
start threads before it has forked, so importing starts nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class Ticker:
    """Does `work` every `interval_s`, from `begin` until `stop`."""

    def __init__(self, name: str, interval_s: float, work: Callable[[], object]) -> None:
        self._name = name
        self._interval_s = interval_s
        self._work = work
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Start the thread, unless it runs. Later calls cost nothing."""
        if self._thread is not None:
            return
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, args=(self._stopping,), name=self._name, daemon=True
                )
                self._thread.start()

    def stop(self) -> None:
        """End the thread after running the function once more. It can be started again."""
        with self._lock:
            thread, self._thread = self._thread, None
            self._stopping.set()
            self._stopping = threading.Event()
        if thread is not None:
            thread.join(timeout=self._interval_s)
        self._work()

    def _run(self, stopping: threading.Event) -> None:
        while not stopping.wait(self._interval_s):
            self._work()
