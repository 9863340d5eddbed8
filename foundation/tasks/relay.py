"""The loop that sends tasks that are due, that dispatchers could not send, or that were lost. It
runs in a thread of beat's process, which never forks (a worker does, and threads and database
connections do not survive that) and which the launcher restarts. If an installation runs several,
they share the work, because rows are claimed by `SKIP LOCKED`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from django.db import DatabaseError

from foundation.tasks.broker import Broker, BrokerUnavailable
from foundation.tasks.dispatch import BATCH, RECLAIM_BATCH, hand_over_due, reclaim_lost

#: How often the outbox is polled: the precision of `due_in_s`.
POLL_S = 0.5
LONGEST_PAUSE_S = 5.0
#: How often to look for tasks that the broker has lost while the id of its data is unchanged: a
#: slow dispatcher may have sent some to the previous data.
RECLAIM_S = 10.0

logger = logging.getLogger(__name__)


def pause_s(failures: int) -> float:
    """Return the pause after a number of failures in a row: short, since tasks are waiting."""
    return min(LONGEST_PAUSE_S, POLL_S * 2.0 ** min(failures, 10))


class Reclaimer:
    """Looks for lost tasks when the id of the broker's data changes, and now and then."""

    def __init__(self, broker: Broker, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self._broker = broker
        self._monotonic_s = monotonic_s
        self._data_id = ""
        self._next_s = 0.0

    def step(self) -> None:
        """Send lost tasks again, if it is time to look for them."""
        data_id = self._broker.data_id()
        if data_id == self._data_id and self._monotonic_s() < self._next_s:
            return
        reclaimed = reclaim_lost(data_id)
        if reclaimed:
            logger.warning("%d tasks are sent again because the broker lost them", reclaimed)
        if reclaimed < RECLAIM_BATCH:
            self._data_id = data_id
            self._next_s = self._monotonic_s() + RECLAIM_S


class TaskRelay:
    """Polls the outbox until it is stopped."""

    def __init__(self) -> None:
        self._broker = Broker()
        self._reclaimer = Reclaimer(self._broker)
        self._stopping = threading.Event()
        self._failures = 0

    def start(self) -> threading.Thread:
        """Run in a thread that ends with the process."""
        thread = threading.Thread(target=self.run, name="relay", daemon=True)
        thread.start()
        return thread

    def run(self) -> None:
        """Send until stopped."""
        pause = 0.0
        while not self._stopping.wait(pause):
            pause = self.step()

    def stop(self) -> None:
        """End `run` after the batch at hand."""
        self._stopping.set()

    def step(self) -> float:
        """Send one batch. Return how long to wait before the next."""
        try:
            self._reclaimer.step()
            handed_over = hand_over_due(self._broker, BATCH)
        except (BrokerUnavailable, DatabaseError) as error:
            self._failures += 1
            if self._failures == 1:
                logger.warning("tasks wait in the outbox: %s", error)
            return pause_s(self._failures)
        if self._failures:
            logger.info("tasks leave the outbox again")
            self._failures = 0
        return 0.0 if handed_over == BATCH else POLL_S
