"""Runs a pipeline as a separate process, and finds the parts of it that can be killed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.own_valkey import free_port

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = {
    "RILLBASE_ANALYTICS_BATCH_AGE_S": "0.2",
    "RILLBASE_ANALYTICS_AUTHORITY_AGE_S": "1",
}
#: Java starts slowly on a busy machine.
START_TIMEOUT_S = 200.0


@contextmanager
def pipeline(workers: str, log: Path) -> Iterator[psutil.Process]:
    """Run a pipeline during the block; kill its remaining processes at the end."""
    with log.open("ab") as file:
        started = subprocess.Popen(
            [sys.executable, "manage.py", "pipeline", "--port", str(free_port())],
            cwd=ROOT,
            env=os.environ | SETTINGS | {"RILLBASE_ANALYTICS_WORKERS": workers},
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
        process = psutil.Process(started.pid)
        try:
            yield process
        finally:
            kill([process, *below(process)])
            started.wait(60)


def below(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def workers_of(process: psutil.Process) -> list[psutil.Process]:
    """Return the processes in which Spark's tasks run."""
    return [child for child in below(process) if "pyspark.daemon" in _line(child)]


def drivers_of(process: psutil.Process) -> list[psutil.Process]:
    """Return the JVM of the driver, which assigns tasks."""
    return [child for child in below(process) if "SparkSubmit" in _line(child)]


def kill(processes: Sequence[psutil.Process]) -> None:
    for process in processes:
        if process.is_running():
            process.kill()


def _line(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""
