"""A separate server process, which a test may stop, or start with other settings."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import requests

from rillbase_server.web_process import HTTP_PROTOCOL, WEBSOCKET_PROTOCOL
from tests.own_valkey import free_port
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[1]


@dataclass
class OtherServer:
    """Uses the suite's database and event layer, unless the environment says otherwise."""

    url: str
    process: subprocess.Popen[bytes]


@contextmanager
def another_server(**variables: str) -> Iterator[OtherServer]:
    """Serve until the block ends, with these settings in addition to those of the suite."""
    port = free_port()
    argv = [sys.executable, "-m", "uvicorn", "tests.application:application"]
    argv += ["--app-dir", "platform", "--port", str(port), "--no-proxy-headers"]
    argv += ["--http", HTTP_PROTOCOL, "--ws", WEBSOCKET_PROTOCOL]
    other = OtherServer(
        f"http://127.0.0.1:{port}",
        subprocess.Popen(argv, cwd=ROOT, env={**os.environ, **variables}),
    )
    try:
        wait_until(
            lambda: _answers(other.url) or other.process.poll() is not None,
            what="the other server",
        )
        assert other.process.poll() is None, "the other server ended"
        yield other
    finally:
        other.process.terminate()
        try:
            other.process.wait(timeout=30)
        finally:
            other.process.kill()


def _answers(url: str) -> bool:
    try:
        return requests.get(f"{url}/healthz", timeout=5).ok
    except requests.RequestException:
        return False
