"""The grid as an application of a real Spark."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError

import psutil
import pytest
import redis

from tests.own_valkey import free_port
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
#: Java starts slowly where others work as well.
START_TIMEOUT_S = 100.0

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def status_url(valkey_url: str, tmp_path: Path) -> Iterator[str]:
    with redis.Redis.from_url(valkey_url) as client:
        client.flushdb()
    port = free_port()
    with (tmp_path / "grid.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "manage.py", "grid", "--port", str(port)],
            cwd=ROOT,
            env=os.environ | {"RILLBASE_GRID": "spark"},
            stdout=log,
            stderr=log,
        )
        try:
            yield f"http://127.0.0.1:{port}/status"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def reports(url: str) -> dict[str, dict[str, object]]:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            found: dict[str, dict[str, object]] = json.load(answer)["nodes"]
            return found
    except (URLError, OSError):
        return {}


def all_watch(url: str) -> dict[str, dict[str, object]]:
    """Return the reports of all nodes, or none while one of them does not watch."""
    found = reports(url)
    watching = len(found) == 3 and all(node["state"] == "running" for node in found.values())
    return found if watching else {}


def test_nodes_are_jobs_of_spark_and_come_back_when_their_workers_are_killed(
    status_url: str,
) -> None:
    wait_until(lambda: bool(all_watch(status_url)), what="all nodes", timeout_s=START_TIMEOUT_S)
    before = reports(status_url)["1:filter:0:0"]
    worker = psutil.Process(int(str(before["pid"])))
    assert any("pyspark.daemon" in part for part in worker.cmdline())
    worker.kill()
    wait_until(
        lambda: all_watch(status_url).get("1:filter:0:0", before)["token"] != before["token"],
        what="the node to be back under another token",
        timeout_s=60.0,
    )


def test_nothing_is_left_of_an_application_whose_driver_was_killed(
    status_url: str,
) -> None:
    wait_until(lambda: bool(all_watch(status_url)), what="all nodes", timeout_s=START_TIMEOUT_S)
    pids = [int(str(node["pid"])) for node in reports(status_url).values()]
    (driver,) = {
        parent
        for parent in psutil.Process(pids[0]).parents()
        if any(part == "grid" for part in parent.cmdline())
    }
    driver.kill()
    wait_until(
        lambda: not any(psutil.pid_exists(pid) for pid in pids),
        what="the nodes to end with their driver",
        timeout_s=60.0,
    )
