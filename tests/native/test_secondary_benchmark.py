"""The benchmark of secondary indexes still runs and checks its own results."""

from __future__ import annotations

import json
import subprocess
import sys


def test_the_benchmark_of_secondary_indexes_runs_without_servers_on_few_tweets() -> None:
    command = [sys.executable, "-m", "benchmarks.secondary"]
    knobs = ["--quick", "--unoptimised", "--rounds", "1", "--documents", "2000"]
    peers = ["--peers", "sqlite"]
    done = subprocess.run([*command, *knobs, *peers], check=True, capture_output=True, text=True)

    last = json.loads(done.stdout.splitlines()[-1])

    assert last["benchmark"] == "secondary"
    assert {"put_none_vs_composite", "lookup_10_vs_sqlite"} <= set(last["goals"])
    for technique in ("composite", "lazy", "eager", "embedded"):
        assert last["figures"][f"lookup_all_{technique}_us"] > 0
        assert last["figures"][f"mix_40_15_5_40_{technique}_per_s"] > 0
    assert last["figures"]["mix_20_70_10_0_best_vs_advised"] >= 1
