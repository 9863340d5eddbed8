"""Nodes as plain processes beside this one: for tests, and for machines without Java."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from realtime.grid.launcher import new_holder
from realtime.grid.layout import NodeSpec

_REPOSITORY = Path(__file__).resolve().parents[2]
#: A node releases its lease on exit; one that takes longer is killed.
GRACE_S = 5.0
MOST_PROCESSES = 256


class ProcessTask:
    """A node in a process."""

    def __init__(self, process: subprocess.Popen[bytes], holder: str) -> None:
        self._process = process
        self.holder = holder

    @property
    def pid(self) -> int:
        return self._process.pid

    def ended(self) -> str | None:
        status = self._process.poll()
        if status is None:
            return None
        if status < 0:
            return f"its process was killed by {signal.Signals(-status).name}"
        return f"its process exited with status {status}"

    def stop(self) -> None:
        self._process.terminate()

    def kill(self) -> None:
        # Unlike other signals, this one also ends a stopped process.
        self._process.kill()

    def wait(self) -> None:
        """Wait for the process to exit, and kill it if it does not."""
        try:
            self._process.wait(GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class ProcessLauncher:
    """Starts each node as a child of this process."""

    def __init__(self) -> None:
        self._tasks: list[ProcessTask] = []

    def open(self, slots: int) -> int:
        """Do nothing: a machine runs as many nodes as it has memory for."""
        return max(slots, MOST_PROCESSES)

    def room(self) -> int:
        return MOST_PROCESSES

    def start(self, node: NodeSpec) -> ProcessTask:
        holder = new_holder()
        paths = [str(_REPOSITORY), str(_REPOSITORY / "platform")]
        process = subprocess.Popen(
            [sys.executable, "-m", "realtime.grid.node", node.to_json(), str(os.getpid()), holder],
            cwd=_REPOSITORY,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        )
        task = ProcessTask(process, holder)
        self._tasks = [other for other in self._tasks if other.ended() is None]
        self._tasks.append(task)
        return task

    def lost(self) -> None:
        return None

    def close(self) -> None:
        for task in self._tasks:
            task.stop()
        for task in self._tasks:
            task.wait()
