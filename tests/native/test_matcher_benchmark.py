"""The benchmark of the matcher still runs and checks its own answers."""

from __future__ import annotations

import json
import subprocess
import sys


def test_the_matcher_benchmark_runs_and_ends_with_its_figures_as_json() -> None:
    command = [sys.executable, "-m", "benchmarks.matcher"]
    knobs = ["--unoptimised", "--seconds", "0.02", "--rounds", "1"]
    done = subprocess.run([*command, *knobs], check=True, capture_output=True, text=True)

    last = json.loads(done.stdout.splitlines()[-1])

    assert last["benchmark"] == "matcher"
    assert set(last["goals"]) == {"single_per_s", "shared_per_s", "compiled_per_s", "idle_bytes"}
    assert all(value > 0 for value in last["figures"].values())
