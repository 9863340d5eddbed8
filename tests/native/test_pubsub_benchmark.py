"""The benchmark of topics still runs and compares what it says."""

from __future__ import annotations

import json
import subprocess
import sys

_COMMAND = [sys.executable, "-m", "benchmarks.pubsub", "--quick", "--unoptimised"]


def _knobs(operations: int) -> list[str]:
    knobs = ["--ops", str(operations), "--mix", "3:1", "--granularity", "variable"]
    return [*knobs, "--node-seconds", "0", "--system", "dual,two,rep", "--direct-ops", "0"]


def test_the_benchmark_of_topics_compares_the_stores_and_ends_with_its_figures_as_json() -> None:
    command = [*_COMMAND, *_knobs(800)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)

    last = json.loads(done.stdout.splitlines()[-1])

    assert last["benchmark"] == "pubsub"
    assert {"dual_vs_rep_3_1", "dual_vs_two_3_1", "dual_vs_two_self_join_3_1"} == set(last["goals"])
    assert last["figures"]["dual_simple_3_1_us"] > 0


def test_the_terminated_benchmark_of_topics_prints_its_results_so_far() -> None:
    command = [*_COMMAND, *_knobs(20_000)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        next(line for line in process.stderr or () if line.startswith("part 40 of 56"))
        process.terminate()
        output, _ = process.communicate()

    figures = json.loads(output.splitlines()[-1])["figures"]

    assert process.returncode == 0
    assert figures["dual_simple_3_1_us"] > 0
    assert figures["dual_vs_rep_3_1"] > 0
    assert "dual_vs_two_self_join_3_1" not in figures
