"""Metrics of several workers, as one scrape shows them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

WORKER = """
import sys
from foundation import metrics
metrics.http_answered("api/v1/x", "GET", 200, 0.004)
metrics.LIMITS_STORE_UP.set(int(sys.argv[1]))
metrics.HTTP_IN_PROGRESS.inc()
print("set", flush=True)
if sys.argv[2] == "stay":
    sys.stdin.readline()
else:
    sys.stdout.write(metrics.render().decode())
"""


def test_one_scrape_shows_all_workers_and_no_gauges_of_dead_ones(tmp_path: Path) -> None:
    environment = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}

    def start(*arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", WORKER, *arguments],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    dead = start("1", "stay")
    dead.communicate("\n")
    running = start("0", "stay")
    assert running.stdout is not None
    assert running.stdout.readline() == "set\n"
    scraped, _ = start("1", "scrape").communicate()
    running.communicate("\n")
    name = "rillbase_http_request_duration_seconds_count"
    assert f'{name}{{method="GET",route="api/v1/x",status="2xx"}} 3.0' in scraped
    assert "rillbase_http_requests_in_progress 2.0" in scraped
    assert "rillbase_limits_store_up 0.0" in scraped
