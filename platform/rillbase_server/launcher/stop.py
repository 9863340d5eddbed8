"""``manage.py stop``: stops the running launcher, and waits until it has exited."""

import signal
import sys
from pathlib import Path

import psutil

from .data_directory import DataDirectory
from .instance_lock import InstanceLock, lock_holder
from .leftovers import stop_leftovers
from .problems import ExitCode, LauncherProblem
from .process import send, wait_for_exit

# Longer than the sum of the grace periods of all ranks.
STOP_TIMEOUT_S = 90.0


def stop(data_dir: Path) -> ExitCode:
    """Stop everything that runs in ``data_dir``: a launcher, or leftovers of a killed one."""
    directory = DataDirectory(data_dir)
    holder = lock_holder(directory.lock)
    process = holder.process() if holder else None
    if holder is None or process is None:
        return _stop_leftovers(directory)
    _print(f"Stopping Rillbase in {data_dir} (pid {holder.pid})")
    try:
        send(process, signal.SIGTERM)
    except psutil.AccessDenied:
        raise LauncherProblem(
            ExitCode.WRONG_OWNER,
            f"The launcher (pid {holder.pid}) belongs to {process.username()}.",
            f"Run this command as {process.username()}.",
        ) from None
    if not wait_for_exit(holder, STOP_TIMEOUT_S):
        raise LauncherProblem(
            ExitCode.STOP_TIMED_OUT,
            f"The launcher (pid {holder.pid}) did not stop within {STOP_TIMEOUT_S:.0f} s.",
            f"Kill it (kill -9 {holder.pid}); the next start cleans up.",
        )
    _print("Stopped.")
    return ExitCode.OK


def _stop_leftovers(directory: DataDirectory) -> ExitCode:
    lock = InstanceLock.acquire(directory.lock) if directory.run.is_dir() else None
    if lock is not None:
        try:
            stopped = stop_leftovers(directory)
        finally:
            lock.release()
        for name in stopped:
            _print(f"Stopped leftover of a killed launcher: {name}")
        if stopped:
            return ExitCode.OK
    _print(f"Rillbase is not running in {directory.root}.")
    return ExitCode.NOT_RUNNING


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
