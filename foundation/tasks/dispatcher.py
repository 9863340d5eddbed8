"""The thread that sends new tasks to the broker right after their commit. Requests do not wait for
the broker: they only leave an id here. While the broker or the database does not respond, ids are
dropped; their rows wait in the outbox for the relay.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from queue import Empty, Full, Queue
from uuid import UUID

from django.db import DatabaseError

from foundation.tasks.broker import Broker, BrokerUnavailable
from foundation.tasks.dispatch import BATCH, hand_over

MAX_WAITING = 10_000
#: How long new tasks are left to the relay after one could not be sent.
PAUSE_S = 2.0

logger = logging.getLogger(__name__)

Send = Callable[[Sequence[UUID]], object]


class Dispatcher:
    """Takes ids from any thread; a dedicated thread, started by the first id, sends them."""

    def __init__(self, send: Send, clock: Callable[[], float] = time.monotonic) -> None:
        self._send = send
        self._clock = clock
        self._waiting: Queue[UUID] = Queue(MAX_WAITING)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._paused_until = 0.0

    def submit(self, task_id: UUID) -> None:
        """Queue a committed task for sending. Never blocks and never fails."""
        if self._clock() < self._paused_until:
            return
        try:
            self._waiting.put_nowait(task_id)
        except Full:
            return  # the relay does the same, only later
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="dispatcher", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            ids = [self._waiting.get(), *self._take_queued(BATCH - 1)]
            try:
                self._send(ids)
            except (BrokerUnavailable, DatabaseError) as error:
                self._paused_until = self._clock() + PAUSE_S
                logger.warning("tasks wait in the outbox: %s", error)

    def _take_queued(self, limit: int) -> list[UUID]:
        ids: list[UUID] = []
        while len(ids) < limit:
            try:
                ids.append(self._waiting.get_nowait())
            except Empty:
                break
        return ids


@lru_cache(maxsize=1)
def dispatcher() -> Dispatcher:
    """Return this process's dispatcher."""
    broker = Broker()
    return Dispatcher(lambda ids: hand_over(broker, ids))


# A forked process inherits neither the thread nor the right to use the parent's connections.
os.register_at_fork(after_in_child=dispatcher.cache_clear)
