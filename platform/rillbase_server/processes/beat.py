"""Celery's beat as a service: the installation's clock, and the relay of the tasks' outbox.

Celery's clock blocks, so each runs in a thread. `foundation.tasks.relay` says why it runs here.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from celery.beat import PersistentScheduler
from kombu.connection import Connection
from kombu.exceptions import OperationalError

from foundation.tasks.relay import TaskRelay
from rillbase_server.celery import app, quiet_celery
from rillbase_server.processes.supervision import ServiceStuck

logger = logging.getLogger(__name__)

LOOK_S = 1.0
RETRY_S = 1.0
#: A clock that has not ticked for this long is stuck. Celery's timeout for its broker is shorter.
STALLED_S = 120.0
#: How long a tick and a batch of the outbox may take to finish.
GRACE_S = 5.0


class _Scheduler(PersistentScheduler):  # type: ignore[misc] # Celery has no types
    """The persistent scheduler. It fails at once if the broker is unreachable."""

    def _ensure_connected(self) -> Connection:
        connection: Connection = self.connection.ensure_connection(max_retries=1)
        return connection


class Beat:
    """The clock of an installation. Two of them are harmless: tasks run twice."""

    def __init__(self) -> None:
        quiet_celery()
        self._relay = TaskRelay()
        self._stopping = threading.Event()
        self._ticked_s: float | None = None
        self._unavailable = ""

    @property
    def ready(self) -> bool:
        """Whether the clock ticks."""
        return self._ticked_s is not None and time.monotonic() - self._ticked_s < STALLED_S

    def status(self) -> dict[str, object]:
        """Describe the state, for operators and probes."""
        since_s = None if self._ticked_s is None else round(time.monotonic() - self._ticked_s, 3)
        return {"seconds_since_tick": since_s, "unavailable": self._unavailable or None}

    async def run(self) -> None:
        """Run the clock and the relay until cancelled, or until one of them fails."""
        begun_s = time.monotonic()
        threads = [_in_thread("beat", self._tick), _in_thread("task-relay", self._relay.run)]
        try:
            while not any(thread.done() for thread in threads):
                await asyncio.wait(threads, timeout=LOOK_S, return_when=asyncio.FIRST_COMPLETED)
                if time.monotonic() - (self._ticked_s or begun_s) > STALLED_S:
                    break
        finally:
            self._stopping.set()
            self._relay.stop()
            _, running = await asyncio.wait(threads, timeout=GRACE_S)
        clock, relay = threads
        if clock in running:
            # The next clock would open the schedule's file beside this one.
            raise ServiceStuck from (None if relay in running else relay.exception())
        await asyncio.gather(*threads)

    def _tick(self) -> None:
        app.set_current()
        path = Path(app.conf.beat_schedule_filename)
        path.parent.mkdir(parents=True, exist_ok=True)
        scheduler = _Scheduler(app=app, schedule_filename=str(path))
        pause_s = 0.0
        try:
            while not self._stopping.wait(pause_s):
                pause_s = self._step(scheduler)
                if scheduler.should_sync():
                    scheduler._do_sync()
        finally:
            # The next clock opens the same file.
            scheduler.close()

    def _step(self, scheduler: _Scheduler) -> float:
        """Send what is due. Return how long to wait before the next step."""
        self._ticked_s = time.monotonic()
        try:
            scheduler.producer  # noqa: B018 -- a tick without a connection would lose due tasks
            next_s: float = scheduler.tick()
        except OperationalError as error:
            if not self._unavailable:
                logger.warning("the clock waits for the broker: %s", error)
            self._unavailable = "broker"
            return RETRY_S
        self._unavailable = ""
        return next_s


def _in_thread(name: str, work: Callable[[], None]) -> asyncio.Future[None]:
    """Run work in a daemon thread, which does not keep the process alive."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[None] = loop.create_future()

    def settle(failed: Exception | None) -> None:
        if result.done():
            return
        if failed is None:
            result.set_result(None)
        else:
            result.set_exception(failed)

    def run() -> None:
        failed: Exception | None = None
        try:
            work()
        except Exception as error:  # noqa: BLE001 -- the future raises it
            failed = error
        loop.call_soon_threadsafe(settle, failed)

    threading.Thread(target=run, name=name, daemon=True).start()
    return result
