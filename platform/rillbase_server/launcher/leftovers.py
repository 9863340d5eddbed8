"""Cleans up after a launcher that was killed.

The kernel has signalled its children to stop (see ``child.py``), but some may still be stopping,
and grandchildren (uvicorn's and Celery's workers) may have lost their parents. They are found

- by the state file: pid, start time and boot must match, since pids are reused;
- by a variable in the environment of all our children, for grandchildren;
- by PostgreSQL's lock file, since its processes hide their environment.

Each gets its stop signal, in the declared order, then a grace period, and is then killed.
"""

import os
import signal
from collections.abc import Iterable, Iterator
from itertools import groupby

import psutil

from .data_directory import DataDirectory
from .postgres import PostgresCluster
from .process import ProcessIdentity, identify, send, wait_for_exit
from .state_file import ServiceRecord, read_state

MARK = "RILLBASE_LAUNCHED_FROM"
GRACE_S = 10.0


def stop_leftovers(directory: DataDirectory, grace_s: float = GRACE_S) -> list[str]:
    """Stop all leftover processes of an earlier launcher; return what was stopped."""
    stopped = []
    recorded = sorted(_read_records(directory), key=lambda record: record.stop_rank)
    for _, group in groupby(recorded, key=lambda record: record.stop_rank):
        records = list(group)
        _stop([(record.identity, record.stop_signal) for record in records], grace_s)
        stopped += [f"{record.name} (pid {record.pid})" for record in records]
    strays = list(_processes_of(directory))
    _stop([(identity, signal.SIGTERM) for identity in strays], grace_s)
    stopped += [f"an orphaned process (pid {identity.pid})" for identity in strays]
    cluster = PostgresCluster(directory.postgres, superuser_password="", port=0)
    if cluster.stop_running_server(grace_s):
        stopped.append("postgres")
    return stopped


def mark_of(directory: DataDirectory) -> dict[str, str]:
    """Return the variable that identifies processes of this data directory."""
    return {MARK: str(directory.root.resolve())}


def _read_records(directory: DataDirectory) -> Iterator[ServiceRecord]:
    record = read_state(directory.state)
    if record is None or not record.this_boot:
        return
    for service in record.services:
        if service.identity is not None and service.identity.is_running:
            yield service


def _processes_of(directory: DataDirectory) -> Iterator[ProcessIdentity]:
    own_mark = mark_of(directory)[MARK]
    for process in psutil.process_iter():
        try:
            is_own = process.environ().get(MARK) == own_mark
        except psutil.Error:
            continue
        identity = identify(process.pid)
        if is_own and identity is not None and process.pid != os.getpid():
            yield identity


def _stop(targets: Iterable[tuple[ProcessIdentity | None, int]], grace_s: float) -> None:
    alive = [(identity, number) for identity, number in targets if identity is not None]
    for identity, number in alive:
        _send(identity, signal.Signals(number))
    for identity, _ in alive:
        if not wait_for_exit(identity, grace_s):
            _send(identity, signal.SIGKILL)
            wait_for_exit(identity, grace_s)


def _send(identity: ProcessIdentity, number: signal.Signals) -> None:
    process = identity.process()
    if process is not None:
        send(process, number)
