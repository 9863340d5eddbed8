"""A Spark driver that cannot start, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TIMEOUT_S = 120.0
ATTEMPTS = """
import sys
from foundation.spark import DriverStartFailure
from realtime.grid.keeper import cause_of
from realtime.grid.spark import SparkLauncher

launcher = SparkLauncher()
for number in range(2):
    try:
        launcher.open(1)
    except DriverStartFailure as failed:
        print(cause_of(failed), flush=True)
    print("-- end of attempt", number, file=sys.stderr, flush=True)
"""


@pytest.mark.timeout(240)
def test_only_the_first_failed_start_is_logged_in_full_and_each_has_its_cause() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ATTEMPTS],
        cwd=ROOT,
        env={
            **os.environ,
            "RILLBASE_GRID": "spark",
            "RILLBASE_GRID_MASTER": "spark://no-port",
            "RILLBASE_SPARK_SECRET": "s" * 32,
        },
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    causes = done.stdout.splitlines()
    assert len(causes) == 2
    assert all("spark://no-port" in cause for cause in causes)
    first, second, _ = done.stderr.split("-- end of attempt")
    assert "\tat org.apache.spark" in first
    assert "\tat " not in second
