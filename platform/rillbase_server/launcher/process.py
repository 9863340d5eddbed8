"""Identifies processes across restarts of the launcher.

A pid is not sufficient: it may have been reused, or belong to a zombie (permanently, in containers
whose first process reaps no children). A process is therefore identified by its pid, its start
time, and the boot of the machine.
"""

import signal
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

POLL_S = 0.02
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class ProcessIdentity:
    """Identifies a process within one boot of the machine."""

    pid: int
    started: int  # clock ticks since boot on Linux, hundredths of a second elsewhere

    def process(self) -> psutil.Process | None:
        """Return the process, or None if it exited, is a zombie, or its pid was reused."""
        current = identify(self.pid)
        if current != self:
            return None
        try:
            return psutil.Process(self.pid)
        except psutil.NoSuchProcess:
            return None

    @property
    def is_running(self) -> bool:
        """Return whether this process is still running."""
        return self.process() is not None


def identify(pid: int) -> ProcessIdentity | None:
    """Return the identity of the process with this pid; None for no process and for zombies."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return _identify_without_proc(pid)
    except ProcessLookupError:
        return None
    fields = _fields(stat)
    state, started = fields[0], int(fields[19])
    return None if state in "ZXx" else ProcessIdentity(pid, started)


def boot_id() -> str:
    """Return the id of this boot of the machine. Identities are invalid after a reboot."""
    try:
        return BOOT_ID.read_text().strip()
    except FileNotFoundError:
        return str(int(psutil.boot_time()))


def send(process: psutil.Process, number: signal.Signals) -> None:
    """Signal ``process``, if it still exists."""
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return


def wait_for_exit(identity: ProcessIdentity, timeout_s: float) -> bool:
    """Wait for the exit of a process, which need not be our child; return False on timeout."""
    deadline = time.monotonic() + timeout_s
    while identity.is_running:
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_S)
    return True


def family(identity: ProcessIdentity) -> list[psutil.Process]:
    """Return the process and all of its descendants."""
    process = identity.process()
    if process is None:
        return []
    try:
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def kill_tree(identity: ProcessIdentity) -> None:
    """Kill a process and all of its descendants, whatever their process groups.

    They are suspended first: a process that is killed leaves its children to another parent, and
    one that runs may fork meanwhile.
    """
    suspended: dict[int, psutil.Process] = {}
    while new := [process for process in family(identity) if process.pid not in suspended]:
        for process in new:
            send(process, signal.SIGSTOP)
            suspended[process.pid] = process
    for process in suspended.values():
        send(process, signal.SIGKILL)


def waits_for_disk(pid: int) -> bool:
    """Return whether a thread of the process is in an uninterruptible system call, usually for a
    disk. Killing the process has no effect until that returns.
    """
    try:
        return any(_state_of(stat) == "D" for stat in Path(f"/proc/{pid}/task").glob("*/stat"))
    except OSError:
        return False


def _state_of(stat: Path) -> str:
    return _fields(stat.read_text())[0]


def _fields(stat: str) -> list[str]:
    """Return the fields after the program's name, which is in parentheses and may contain
    anything.
    """
    return stat.rpartition(")")[2].split()


def memory_bytes(processes: list[psutil.Process]) -> int:
    """Return the memory of processes, with shared memory counted once (PSS, or else RSS)."""
    total = 0
    for process in processes:
        try:
            full = process.memory_full_info()
            total += getattr(full, "pss", full.rss)
        except psutil.Error:
            continue
    return total


def _identify_without_proc(pid: int) -> ProcessIdentity | None:
    if Path("/proc/self/stat").exists():
        return None
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return ProcessIdentity(pid, int(process.create_time() * 100))
    except psutil.NoSuchProcess:
        return None
