"""Whether a service hangs, on a virtual clock; and the questions that it is asked."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rillbase_server.launcher.liveness import INTERVAL_S, Liveness
from rillbase_server.launcher.liveness_file import keep_fresh, liveness_path
from rillbase_server.launcher.readiness import file_renewed, http_answers, readiness_problem

SERVER = "import http.server as h; s=h.HTTPServer(('127.0.0.1',0),h.BaseHTTPRequestHandler); \
print(s.server_port, flush=True); s.serve_forever()"


def test_a_service_that_never_answers_again_hangs_after_its_time() -> None:
    liveness, now = Liveness(15), 100.0
    assert not liveness.record_check(now, answered=True)
    while not liveness.record_check(now := now + INTERVAL_S, answered=False):
        continue
    assert now - 100.0 == 16.0
    assert liveness.silent_s == 16.0


def test_one_response_resets_the_time() -> None:
    liveness = Liveness(15)
    for number in range(1_000):
        assert not liveness.record_check(number * INTERVAL_S, answered=number % 7 == 0)


def test_a_service_that_waits_for_a_disk_has_eight_times_as_long() -> None:
    liveness, now = Liveness(8), 100.0
    liveness.record_check(now, answered=True)
    while not liveness.record_check(now := now + INTERVAL_S, answered=False, waits_for_disk=True):
        continue
    assert now - 100.0 == 64.0


def test_a_suspended_launcher_does_not_count_missing_responses() -> None:
    liveness = Liveness(15)
    liveness.record_check(0, answered=True)
    assert not liveness.record_check(3_600, answered=False)
    assert not liveness.record_check(3_602, answered=True)


@contextmanager
def http_server() -> Iterator[tuple[subprocess.Popen[str], str]]:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            yield process, f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


async def test_a_stopped_server_does_not_respond_although_it_still_listens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rillbase_server.launcher.readiness.LIVENESS_TIMEOUT_S", 0.5)
    with http_server() as (process, url):
        alive = http_answers(url)
        assert await alive(process.pid) is None
        process.send_signal(signal.SIGSTOP)
        with pytest.raises(TimeoutError):
            await alive(process.pid)
        process.send_signal(signal.SIGCONT)


async def test_a_heartbeat_has_to_be_renewed_between_two_checks(tmp_path: Path) -> None:
    sign = liveness_path(tmp_path / "worker.ready")
    alive = file_renewed(sign)
    assert await alive(1) is not None
    sign.touch()
    assert await alive(1) is None
    assert await alive(1) is not None
    os.utime(sign, (1, 1))
    assert await alive(1) is None


async def test_a_process_renews_its_heartbeat_itself(tmp_path: Path) -> None:
    sign = tmp_path / "sign"
    keep_fresh(sign)
    alive = file_renewed(sign)
    for _ in range(2):
        async with asyncio.timeout(60):
            while await alive(1) is not None:  # noqa: ASYNC110 -- a file shows it
                await asyncio.sleep(0.01)


def test_a_problem_is_reported_in_one_line() -> None:
    grid = b'{"state": "down", "latency_ms": 3, "watching": 2, "nodes": 3}'
    body = b'{"status": "degraded", "dependencies": {"database": {"state": "up"}, "grid": %s}}'
    assert readiness_problem(body % grid) == "grid down, watching 2, nodes 3"
    assert readiness_problem(body % b'{"state": "up"}') is None
    assert readiness_problem(b"no JSON") is None
