"""A browser, and a worker beside the server that sends the emails its calls trigger.

Imports that need Django wait until the fixtures run: pytest reads this file before it is set up.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.browser import Browser

ROOT = Path(__file__).resolve().parents[3]
STOP_TIMEOUT_S = 30


@pytest.fixture(scope="session")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A Celery worker that only sends emails. Tasks wait until it is up.

    It runs in a separate process: workers in threads of one process stop one another.
    """
    argv = [sys.executable, "-m", "celery", "-A", "rillbase_server.celery", "--quiet", "worker"]
    argv += ["--pool", "solo", "--queues", "mail"]
    argv += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
    with (tmp_path_factory.mktemp("mail-worker") / "worker.log").open("wb") as log:
        process = subprocess.Popen(argv, cwd=ROOT, env=os.environ, stdout=log, stderr=log)
    yield
    process.terminate()
    process.wait(STOP_TIMEOUT_S)


@pytest.fixture
def browser(server: str) -> Browser:
    """A browser in which nobody has signed in."""
    from tests.browser import Browser

    return Browser(server)
