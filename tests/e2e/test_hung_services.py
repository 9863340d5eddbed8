"""Services suspended by a signal: the launcher replaces them."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.launcher_process import LauncherDirectory
from tests.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
BACK_S = 240.0
SERVICES = ("web", "worker", "background", "grid")


def test_every_hung_service_is_replaced(launcher_directory: LauncherDirectory) -> None:
    with launcher_directory.up(RILLBASE_GRID="processes"):
        wait_until(lambda: are_ready(launcher_directory), what="all services", timeout_s=BACK_S)
        pids = {name: int(launcher_directory.services()[name]["pid"]) for name in SERVICES}
        began_s = time.monotonic()
        for pid in pids.values():
            os.kill(pid, signal.SIGSTOP)
        replaced_s: dict[str, float] = {}

        def all_are_replaced() -> bool:
            result = launcher_directory.services()
            for name, pid in pids.items():
                if result[name]["restarts"] and result[name]["pid"] not in (None, pid):
                    replaced_s.setdefault(name, round(time.monotonic() - began_s, 1))
            return len(replaced_s) == len(pids) and are_ready(launcher_directory)

        wait_until(all_are_replaced, what="other processes", timeout_s=BACK_S)
        print(replaced_s)  # noqa: T201 -- shown by -s, for the documentation


def are_ready(launcher_directory: LauncherDirectory) -> bool:
    result = launcher_directory.services()
    return all(result[name]["state"] == "ready" for name in SERVICES)
