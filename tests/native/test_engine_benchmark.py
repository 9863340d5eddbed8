"""The benchmark of the engine still runs and checks its own answers."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


@pytest.mark.timeout(900)
def test_the_engine_benchmark_runs_without_peers_and_ends_with_its_figures_as_json() -> None:
    command = [sys.executable, "-m", "benchmarks.engine"]
    knobs = ["--quick", "--unoptimised", "--rounds", "1", "--scale", "0.005", "--peers", ""]
    done = subprocess.run([*command, *knobs], check=True, capture_output=True, text=True)

    last = json.loads(done.stdout.splitlines()[-1])

    assert last["benchmark"] == "engine"
    assert {"durable_32_vs_1", "durable_32_vs_1_slow_disk"} == set(last["goals"])
    assert last["figures"]["readrandom_100_none_t1_us"] > 0
    assert last["figures"]["runs_100_none_t1_rillbase"] >= 1
