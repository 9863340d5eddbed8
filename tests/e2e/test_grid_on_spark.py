"""The grid as a Spark application."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import URLError

import psutil
import pyspark
import pytest
import redis

from tests.own_valkey import free_port
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
#: Java starts slowly on a busy machine.
START_TIMEOUT_S = 100.0
STANDALONE_SECRET = "a-secret-of-the-standalone-cluster"

pytestmark = pytest.mark.timeout(240)


@contextmanager
def started(log: Path, *argv: str, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program until the block ends."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            argv, cwd=ROOT, env=os.environ | variables, stdout=output, stderr=output
        )
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


@contextmanager
def grid(valkey_url: str, log: Path, **variables: str) -> Iterator[str]:
    """Run the grid as a Spark application; yields the URL of its status."""
    with redis.Redis.from_url(valkey_url) as client:
        client.flushdb()
    port = str(free_port())
    argv = (sys.executable, "manage.py", "grid", "--port", port)
    with started(log, *argv, RILLBASE_GRID="spark", **variables):
        yield f"http://127.0.0.1:{port}/status"


@pytest.fixture
def status_url(valkey_url: str, tmp_path: Path) -> Iterator[str]:
    with grid(valkey_url, tmp_path / "grid.log") as url:
        yield url


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    """A separate standalone cluster: a master and one worker, with Spark's own scripts."""
    port = str(free_port())
    url = f"spark://127.0.0.1:{port}"
    protected = tmp_path / "protected.conf"
    protected.write_text(
        f"spark.authenticate true\nspark.authenticate.secret {STANDALONE_SECRET}\n"
        "spark.network.crypto.enabled true\nspark.network.crypto.cipher AES/GCM/NoPadding\n"
    )
    properties = ["--properties-file", str(protected)]
    works = ["--cores", "8", "--memory", "2g", "--work-dir", str(tmp_path / "work")]
    with (
        daemon(tmp_path, "Master", "--port", port, *properties),
        daemon(tmp_path, "Worker", *works, *properties, url),
    ):
        yield url


@contextmanager
def daemon(directory: Path, kind: str, *options: str) -> Iterator[None]:
    """Run a daemon of a standalone cluster; yields once it accepts connections."""
    home = Path(pyspark.__file__).parent
    log = directory / f"{kind}.log"
    program = (str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind.lower()}.{kind}")
    argv = (*program, "--host", "127.0.0.1", "--webui-port", "0", *options)
    variables = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"}
    with started(log, *argv, **variables) as process:

        def listens() -> bool:
            log_line = f"Successfully started service 'spark{kind}'"
            return log_line in log.read_text() or process.poll() is not None

        wait_until(listens, what=f"Spark's {kind}", timeout_s=START_TIMEOUT_S)
        assert process.poll() is None, log.read_text()
        yield


def reports(url: str) -> dict[str, dict[str, object]]:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            body: dict[str, dict[str, object]] = json.load(answer)["nodes"]
            return body
    except (URLError, OSError):
        return {}


def all_watch(url: str) -> dict[str, dict[str, object]]:
    """Return the reports of all nodes, or none while one of them is not ready."""
    result = reports(url)
    watching = len(result) == 3 and all(node["state"] == "running" for node in result.values())
    return result if watching else {}


def test_nodes_run_as_spark_jobs_and_are_restarted_after_their_workers_are_killed(
    status_url: str,
) -> None:
    wait_until(lambda: bool(all_watch(status_url)), what="all nodes", timeout_s=START_TIMEOUT_S)
    before = reports(status_url)["1:filter:0:0"]
    worker = psutil.Process(int(str(before["pid"])))
    assert any("pyspark.daemon" in part for part in worker.cmdline())
    worker.kill()
    wait_until(
        lambda: all_watch(status_url).get("1:filter:0:0", before)["token"] != before["token"],
        what="the node to be restarted with a new token",
        timeout_s=60.0,
    )


@pytest.mark.long
def test_a_hung_worker_is_replaced_and_a_hung_driver_ends_with_its_process(
    status_url: str,
) -> None:
    wait_until(lambda: bool(all_watch(status_url)), what="all nodes", timeout_s=START_TIMEOUT_S)
    before = reports(status_url)["1:filter:0:0"]
    worker = psutil.Process(int(str(before["pid"])))
    began_s = time.monotonic()
    worker.suspend()
    wait_until(
        lambda: all_watch(status_url).get("1:filter:0:0", before)["token"] != before["token"],
        what="a replacement for the node",
    )
    print(f"node: {time.monotonic() - began_s:.1f} s")  # noqa: T201 -- shown by -s
    wait_until(lambda: not worker.is_running(), what="the end of the hung node")
    worker = psutil.Process(int(str(reports(status_url)["1:filter:0:0"]["pid"])))
    java = next(parent for parent in worker.parents() if "java" in parent.name())
    supervisor = java.parent()
    assert supervisor is not None
    began_s = time.monotonic()
    java.suspend()
    wait_until(
        lambda: not supervisor.is_running() or supervisor.status() == psutil.STATUS_ZOMBIE,
        what="the end of the grid's process",
    )
    print(f"driver: {time.monotonic() - began_s:.1f} s")  # noqa: T201 -- shown by -s
    wait_until(lambda: not java.is_running(), what="the end of the driver")
    wait_until(lambda: not worker.is_running(), what="the end of its nodes")


@pytest.mark.long
def test_nodes_on_a_standalone_cluster_are_restarted_after_their_executor_is_killed(
    master: str, valkey_url: str, tmp_path: Path
) -> None:
    variables = {"RILLBASE_GRID_MASTER": master, "RILLBASE_SPARK_SECRET": STANDALONE_SECRET}
    with grid(valkey_url, tmp_path / "grid.log", **variables) as url:
        wait_until(lambda: bool(all_watch(url)), what="all nodes", timeout_s=START_TIMEOUT_S)
        before = reports(url)
        node = psutil.Process(int(str(before["1:filter:0:0"]["pid"])))
        (executor,) = [
            parent
            for parent in node.parents()
            if any("CoarseGrainedExecutorBackend" in part for part in parent.cmdline())
        ]
        family = [process.cmdline() for process in node.parents()]
        logins = (STANDALONE_SECRET, "RILLBASE_SECRET_KEY", "EVENTS_URL", "REDIS_URL")
        assert not any(login in part for login in logins for line in family for part in line)
        executor.kill()

        def others_watch() -> bool:
            after = all_watch(url)
            return bool(after) and all(
                after[name]["token"] != before[name]["token"] for name in before
            )

        wait_until(others_watch, what="all nodes to have new tokens", timeout_s=120.0)


def test_no_process_of_an_application_survives_the_kill_of_its_driver(
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
