"""A separate broker, worker and relay for a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from foundation.json_types import JsonObject
from foundation.models import OutboxTask
from foundation.tasks import run_after_commit
from foundation.tasks.app import app
from foundation.tasks.dispatcher import dispatcher
from foundation.tasks.relay import TaskRelay
from tests.celery_worker import CeleryWorker
from tests.own_valkey import OwnValkey


@dataclass(frozen=True)
class Bench:
    """A broker, a worker on it, and this process's dispatcher pointed to it."""

    broker: OwnValkey
    worker: CeleryWorker

    def run(self, name: str, arguments: JsonObject) -> None:
        run_after_commit(f"bench.{name}", arguments)


@contextmanager
def _broker_of_this_process(url: str) -> Iterator[None]:
    before = app.conf.broker_url
    app.conf.broker_url = url
    dispatcher.cache_clear()
    try:
        yield
    finally:
        app.conf.broker_url = before
        dispatcher.cache_clear()


@contextmanager
def _relay_running() -> Iterator[None]:
    relay = TaskRelay()
    thread = relay.start()
    try:
        yield
    finally:
        relay.stop()
        thread.join()


@contextmanager
def running_bench(folder: Path, *, relay: bool = True) -> Iterator[Bench]:
    """Broker and relay run until the block ends; the worker is for the test to start."""
    # Other tests' tasks are in another broker, so they look lost to this one.
    OutboxTask.objects.using("relay").exclude(handed_to="").delete()
    broker = OwnValkey(folder)
    worker = CeleryWorker(folder, broker.url)
    try:
        with _broker_of_this_process(broker.url), _relay_running() if relay else nullcontext():
            yield Bench(broker, worker)
    finally:
        worker.close()
        broker.close()
