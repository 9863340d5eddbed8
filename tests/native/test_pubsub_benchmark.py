"""The benchmark of topics still runs and compares what it says."""

from __future__ import annotations

import json
import subprocess
import sys


def test_the_benchmark_of_topics_compares_the_stores_and_ends_with_its_figures_as_json() -> None:
    command = [sys.executable, "-m", "benchmarks.pubsub", "--quick", "--unoptimised"]
    knobs = ["--ops", "800", "--mix", "3:1", "--granularity", "variable", "--node-seconds", "0"]
    knobs += ["--system", "dual,two,rep", "--direct-ops", "0"]
    done = subprocess.run([*command, *knobs], check=True, capture_output=True, text=True)

    last = json.loads(done.stdout.splitlines()[-1])

    assert last["benchmark"] == "pubsub"
    assert {"dual_vs_rep_3_1", "dual_vs_two_3_1", "dual_vs_two_self_join_3_1"} == set(last["goals"])
    assert last["figures"]["dual_simple_3_1_us"] > 0
