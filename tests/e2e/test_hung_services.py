"""Services suspended by a signal, with all of their processes: the launcher replaces them."""

from __future__ import annotations

import time

import psutil
import pytest

from tests.launcher_process import LauncherDirectory
from tests.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
BACK_S = 240.0
#: A service is killed 8 s after its last response, and starts within seconds.
REPLACED_S = 25.0
OWN = ("web", "worker", "background", "grid")
SERVERS = ("postgres", "valkey", "node")


def test_every_hung_service_is_replaced(launcher_directory: LauncherDirectory) -> None:
    with launcher_directory.up(RILLBASE_GRID="processes"):
        await_ready(launcher_directory)
        for names in (OWN, *((name,) for name in SERVERS)):
            replaced_s = replacement_s(launcher_directory, names)
            print(replaced_s)  # noqa: T201 -- shown by -s, for the documentation
            assert max(replaced_s.values()) < REPLACED_S


def replacement_s(
    launcher_directory: LauncherDirectory, names: tuple[str, ...]
) -> dict[str, float]:
    """Suspend services; return how long each took to get another process. All are ready then."""
    services = launcher_directory.services()
    pids = {name: int(services[name]["pid"]) for name in names}
    began_s = time.monotonic()
    for pid in pids.values():
        suspend_tree(pid)
    replaced_s: dict[str, float] = {}

    def all_are_replaced() -> bool:
        result = launcher_directory.services()
        for name, pid in pids.items():
            if result[name]["pid"] not in (None, pid):
                replaced_s.setdefault(name, round(time.monotonic() - began_s, 1))
        return len(replaced_s) == len(pids)

    wait_until(all_are_replaced, what="other processes", timeout_s=BACK_S)
    await_ready(launcher_directory)
    return replaced_s


def suspend_tree(pid: int) -> None:
    leader = psutil.Process(pid)
    for process in (leader, *leader.children(recursive=True)):
        process.suspend()


def await_ready(launcher_directory: LauncherDirectory) -> None:
    def are_ready() -> bool:
        result = launcher_directory.services()
        return all(result[name]["state"] == "ready" for name in (*OWN, *SERVERS))

    wait_until(are_ready, what="all services", timeout_s=BACK_S)
