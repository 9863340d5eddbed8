"""The query engine alone: compiling filters, evaluating them one by one and many at once.

    python -m benchmarks.matcher [--quick]

Documents have five strings of ten characters and five integers; filters are `random >= i AND random
< j`. The work is native (native/query/examples/match_rate.rs), built here and run in a separate
process; rates are per second of CPU time, so other load on the machine changes them little.
`shared` evaluates ten thousand filters that share a path on one document after the other.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.support.native import built
from benchmarks.support.report import Report, median


@dataclass(frozen=True, slots=True)
class Knobs:
    """The extent of the measurement."""

    seconds: float
    rounds: int
    optimised: bool


def main() -> None:
    """Measure and report."""
    knobs = _knobs()
    report = Report("matcher", {"seconds": knobs.seconds, "rounds": knobs.rounds})
    binary = built("rillbase-query", example="match_rate", optimised=knobs.optimised)
    rounds = [_round(binary, knobs.seconds) for _ in range(knobs.rounds)]
    middle = {name: median([figures[name] for figures in rounds]) for name in rounds[0]}
    report.add(
        "single_per_s",
        middle["single_per_second"],
        "/s",
        "evaluations of one filter on a decoded document, per core",
        ">= 3000000",
    )
    report.add(
        "shared_per_s",
        middle["shared_per_second"],
        "/s",
        "evaluations of 10,000 filters on one document, per core",
        ">= 20000000",
    )
    report.add(
        "compiled_per_s",
        middle["compiled_per_second"],
        "/s",
        "filters parsed, normalized and hashed, per core",
        ">= 100000",
    )
    report.add(
        "idle_bytes",
        middle["idle_bytes"],
        "B",
        "resident memory of a filter of three predicates in a set",
        "<= 1024",
    )
    report.finish()


def _knobs() -> Knobs:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="finish in about a minute")
    parser.add_argument("--seconds", type=float, help="CPU time for each figure of a round")
    parser.add_argument("--rounds", type=int, help="rounds; the median counts")
    parser.add_argument(
        "--unoptimised", action="store_true", help="build without optimisation (for tests)"
    )
    arguments = parser.parse_args()
    return Knobs(
        seconds=arguments.seconds or (1.0 if arguments.quick else 5.0),
        rounds=arguments.rounds or (3 if arguments.quick else 7),
        optimised=not arguments.unoptimised,
    )


def _round(binary: Path, seconds: float) -> dict[str, float]:
    """Run once; the program checks its own results and fails if they are wrong."""
    command = [str(binary), str(seconds)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


if __name__ == "__main__":
    main()
