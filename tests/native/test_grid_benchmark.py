"""The benchmark of the grid still runs, and loses nothing."""

from __future__ import annotations

import json
import subprocess
import sys


def test_the_grid_benchmark_runs_and_ends_with_its_figures_as_json() -> None:
    command = [sys.executable, "-m", "benchmarks.grid", "--unoptimised"]
    knobs = ["--queries", "100", "--writes", "200", "--seconds", "2", "--kind", "mixed"]
    done = subprocess.run([*command, *knobs], check=True, capture_output=True, text=True)

    last = json.loads(done.stdout.splitlines()[-1])

    assert last["benchmark"] == "grid"
    run = "mixed_100_queries_200_writes_1x2"
    assert last["figures"][f"{run}_lost"] == 0
    assert last["figures"][f"{run}_delivered"] > 0
