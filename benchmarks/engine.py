"""The storage engine compared with RocksDB, LevelDB and LMDB, each by its native interface.

    python -m benchmarks.engine [--workload fillseq,readrandom] [--peers rocksdb,leveldb,lmdb]
        [--values 100,1024] [--compression none,lz4] [--threads 1,2] [--rounds 7] [--scale 1]
        [--direct] [--quick]

One program (native/engine_bench) drives all of them with the same data, cache, memtable, threads
and durability. The peers' C libraries are used if they are installed (Debian: librocksdb7.8,
libleveldb1d, liblmdb0) and otherwise omitted with a notice. Live data is five times as large as
memtable and cache together. Reads of all stores use the system's cache, unless --direct is given;
then only stores that can bypass it are compared.

A ratio is the median, over the rounds, of the peer's time per operation divided by ours: above 1
our engine is faster. `…_cpu_…` compares the CPU time of all threads, background work included,
which depends less on the machine's other load. Each round writes somewhat more than the one before,
so that reads are measured with few and with many runs to merge; the number of runs left, and of
blocks that a read requested from the system, are also reported. Group commit is measured on the
machine's disk, and on one whose syncs take 2 ms more. The stores must return the same entries, or
the run fails. With --python a second table compares the packages of requirements/bench.txt that are
installed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from benchmarks.peers.python_stores import compare
from benchmarks.support.engine_rounds import OURS, Case, Driver, Run
from benchmarks.support.native import built
from benchmarks.support.report import Report, median

_WORKLOADS = (
    "fillseq",
    "fillrandom",
    "readrandom",
    "readmissing",
    "seekrandom",
    "scan",
    "mixed",
    "overwrite",
)
# Workloads that read few entries, each of which may need a block that is not in the store's cache.
_LOOKS = ("readrandom", "readmissing", "seekrandom")
_PEERS = ("rocksdb", "leveldb", "lmdb")
# LevelDB and LMDB do not support LZ4.
_WITH_LZ4 = ("rocksdb",)
# Only these can bypass the system's cache for tables.
_WITH_DIRECT = ("rocksdb",)
# The workloads with goals; the others are only reported.
_RIVAL = "rocksdb"
_AS_FAST = ">= 0.95"
_AS_SMALL = "<= 1.05"
_MANY_THREADS = 32
# Per thread.
_DURABLE_WRITES = 600
# The additional time of a sync on the slow disk, like one that waits for flash memory or a network.
_SLOW_SYNC_US = 2000


@dataclass(frozen=True, slots=True)
class Knobs:
    """What is measured, and to what extent."""

    workloads: Sequence[str]
    peers: Sequence[str]
    cases: Sequence[Case]
    rounds: int
    scale: float
    reopen: bool
    python: bool
    optimised: bool


def main() -> None:
    """Measure and report."""
    knobs = _knobs()
    report = Report(
        "engine",
        {
            "cases": [case.label for case in knobs.cases],
            "rounds": knobs.rounds,
            "scale": knobs.scale,
        },
    )
    program = built("rillbase-engine-bench", optimised=knobs.optimised)
    with tempfile.TemporaryDirectory(prefix="rillbase-engine-") as directory:
        driver = Driver(program, Path(directory))
        for case in knobs.cases:
            _say(f"{case.label} …")
            _add_case(report, driver, knobs, case)
        _say("merge …")
        _add_merge(report, driver, knobs)
        _say("durable writes …")
        _add_durable(report, driver, knobs)
        if knobs.python:
            _say("Python packages …")
            _add_python(report, Path(directory), knobs)
    if knobs.reopen:
        _say("reopening …")
        _add_reopening(report)
    for peer in sorted(driver.missing):
        _say(f"{peer} is left out: its library is not installed")
    report.finish()


def _add_case(report: Report, driver: Driver, knobs: Knobs, case: Case) -> None:
    """Compare all workloads of a case."""
    peers = [
        peer
        for peer in knobs.peers
        if (case.compression == "none" or peer in _WITH_LZ4)
        and (not case.direct or peer in _WITH_DIRECT)
    ]
    names = [name for name in _WORKLOADS if name in knobs.workloads]
    # Reads need data, and amplification is measured for random puts.
    steps = ["fillrandom", "settle", *(n for n in names if n not in {"fillseq", "fillrandom"})]
    if "fillseq" in names:
        steps.insert(0, "fillseq")
    rounds = list(driver.rounds([OURS, *peers], steps, case.rounds(knobs.scale, knobs.rounds)))
    for name in names:
        micros = median([_of(runs, OURS).seconds(name) * 1e6 for runs in rounds])
        report.add(f"{name}_{case.label}_us", micros, "µs", "ours, an operation")
    for peer in (peer for peer in peers if peer not in driver.missing):
        goal = _AS_FAST if peer == _RIVAL else ""
        for name in names:
            pairs = [(_of(runs, OURS), _of(runs, peer)) for runs in rounds]
            ratio = median([theirs.seconds(name) / ours.seconds(name) for ours, theirs in pairs])
            report.add(f"{name}_{case.label}_vs_{peer}", ratio, "x", "their time ÷ ours", goal)
            own = sum(ours.processor_seconds(name) for ours, _ in pairs)
            if own:
                ratio = sum(theirs.processor_seconds(name) for _, theirs in pairs) / own
                report.add(f"{name}_{case.label}_cpu_vs_{peer}", ratio, "x", "by processor time")
    _add_reads(report, case, rounds, names)
    _add_amplification(report, case, rounds, peers=[p for p in peers if p not in driver.missing])


def _add_reads(report: Report, case: Case, rounds: list[list[Run]], names: Sequence[str]) -> None:
    """Report how many runs were left to search, and how often a read made a system call."""
    for store in dict.fromkeys(run.store for runs in rounds for run in runs):
        lines = [_of(runs, store).lines for runs in rounds]
        left = sum(line["settle"]["runs"] for line in lines) / len(lines)
        report.add(f"runs_{case.label}_{store}", left, "", "runs left when writing ended, mean")
        for name in (name for name in names if name in _LOOKS):
            calls = [line[name]["read_calls"] / line[name]["operations"] for line in lines]
            mean = sum(calls) / len(calls)
            report.add(f"{name}_{case.label}_{store}_reads", mean, "", "blocks read, mean")


def _add_amplification(
    report: Report, case: Case, rounds: list[list[Run]], peers: Sequence[str]
) -> None:
    """Report how much was written and stored for each byte of `fillrandom`."""

    def middle(store: str, above: str, below: str) -> float:
        lines = [_of(runs, store).lines["settle"] for runs in rounds]
        return median([line[above] / line[below] for line in lines])

    for kind, above, below, what in (
        ("write", "written_bytes", "put_bytes", "bytes written, logs included, ÷ bytes put"),
        ("space", "data_bytes", "live_bytes", "bytes of tables ÷ live bytes"),
    ):
        own = middle(OURS, above, below)
        report.add(f"{kind}_amplification_{case.label}", own, "x", what)
        for peer in peers:
            name = f"{kind}_amplification_{case.label}_vs_{peer}"
            goal = _AS_SMALL if peer == _RIVAL else ""
            report.add(name, own / middle(peer, above, below), "x", "ours ÷ theirs", goal)


def _add_merge(report: Report, driver: Driver, knobs: Knobs) -> None:
    """Compare counting by merge operands with counting by reads and writes in the peers."""
    arguments = Case(100, "none", 1).rounds(knobs.scale, knobs.rounds)
    rounds = list(driver.rounds([OURS, *knobs.peers], ["merge"], arguments))
    for peer in (peer for peer in knobs.peers if peer not in driver.missing):
        ratio = median(
            [_of(runs, peer).seconds("merge") / _of(runs, OURS).seconds("merge") for runs in rounds]
        )
        report.add(f"merge_vs_{peer}", ratio, "x", "their read-modify-write ÷ our merge")


def _add_durable(report: Report, driver: Driver, knobs: Knobs) -> None:
    """Compare durable writes of single keys by one thread and by many."""
    rates: dict[tuple[str, int], list[float]] = {}
    stores = [OURS, *(peer for peer in knobs.peers if peer == _RIVAL)]
    # Runs with one thread and with many also alternate, because the speed of disks varies.
    for number in range(knobs.rounds):
        turn = stores if number % 2 == 0 else stores[::-1]
        for threads in (1, _MANY_THREADS):
            count = int(_DURABLE_WRITES * max(knobs.scale, 0.5)) * threads
            arguments = ["--num", "100000", "--reads", str(count), "--threads", str(threads)]
            for runs in driver.rounds(turn, ["fillsync"], [arguments]):
                for run in runs:
                    rates.setdefault((run.store, threads), []).append(1 / run.seconds("fillsync"))
    one, many = rates[OURS, 1], rates[OURS, _MANY_THREADS]
    report.add("durable_1_per_s", median(one), "/s", "durable writes, one thread")
    report.add("durable_32_per_s", median(many), "/s", "durable writes, 32 threads")
    grouping = median([group / single for single, group in zip(one, many, strict=True)])
    report.add("durable_32_vs_1", grouping, "x", "group commit", ">= 10")
    _add_slow_disk(report, driver, knobs)
    for threads in (1, _MANY_THREADS):
        theirs = rates.get((_RIVAL, threads))
        if theirs:
            own = rates[OURS, threads]
            ratio = median([ours / their for ours, their in zip(own, theirs, strict=True)])
            name = f"durable_{threads}_vs_{_RIVAL}"
            report.add(name, ratio, "x", "our rate ÷ theirs", _AS_FAST)


def _add_slow_disk(report: Report, driver: Driver, knobs: Knobs) -> None:
    """Compare one thread with many if a sync takes milliseconds; only our engine can be slowed
    down.
    """
    pairs = []
    count = int(_DURABLE_WRITES * max(knobs.scale, 0.5) / 4)
    for _ in range(knobs.rounds):
        took = []
        for threads in (1, _MANY_THREADS):
            threading = ["--threads", str(threads), "--sync-delay-us", str(_SLOW_SYNC_US)]
            arguments = ["--num", "100000", "--reads", str(count * threads), *threading]
            took += [
                _of(runs, OURS).seconds("fillsync")
                for runs in driver.rounds([OURS], ["fillsync"], [arguments])
            ]
        pairs.append(took)
    for name, at in ((1, 0), (_MANY_THREADS, 1)):
        rate = median([1 / pair[at] for pair in pairs])
        report.add(f"durable_{name}_slow_disk_per_s", rate, "/s", "a sync takes 2 ms more")
    grouping = median([one / many for one, many in pairs])
    report.add("durable_32_vs_1_slow_disk", grouping, "x", "group commit, 2 ms a sync", ">= 10")


def _add_python(report: Report, directory: Path, knobs: Knobs) -> None:
    """Compare the Python packages that are installed."""
    for name, figures in compare(directory, knobs.scale, knobs.rounds).items():
        if figures is None:
            _say(f"{name} is left out: its package is not installed")
            continue
        for workload, seconds in figures.items():
            what = "an operation from Python"
            report.add(f"python_{workload}_{name}_us", seconds * 1e6, "µs", what)


def _add_reopening(report: Report) -> None:
    """Report how long opening takes after a kill that left a log of 64 MiB."""
    program = built("rillbase-engine", example="reopen")
    done = subprocess.run([str(program)], check=True, capture_output=True, text=True)
    reopening: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    report.add(
        "reopen_s", reopening["reopen_seconds"], "s", "opening after kill -9, 64 MiB of log", "<= 1"
    )


def _of(runs: list[Run], store: str) -> Run:
    return next(run for run in runs if run.store == store)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _knobs() -> Knobs:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="finish in about a minute")
    parser.add_argument("--workload", default=",".join(_WORKLOADS), help="which workloads")
    parser.add_argument("--peers", default=",".join(_PEERS), help="which peers")
    parser.add_argument("--values", help="sizes of values, in bytes")
    parser.add_argument("--compression", help="none, lz4 or both")
    parser.add_argument("--threads", help="numbers of threads")
    parser.add_argument(
        "--direct", action="store_true", help="bypass the system's cache for tables"
    )
    parser.add_argument("--rounds", type=int, help="rounds; the median counts")
    parser.add_argument("--scale", type=float, help="scale of data, memtable and cache; 1 is full")
    parser.add_argument("--python", action="store_true", help="compare the Python packages too")
    parser.add_argument(
        "--unoptimised", action="store_true", help="build without optimisation (for tests)"
    )
    arguments = parser.parse_args()
    quick = arguments.quick
    cases = product(
        [int(value) for value in (arguments.values or ("100" if quick else "100,1024")).split(",")],
        (arguments.compression or ("none" if quick else "none,lz4")).split(","),
        [int(count) for count in (arguments.threads or ("1" if quick else "1,2")).split(",")],
    )
    return Knobs(
        workloads=arguments.workload.split(","),
        peers=[peer for peer in arguments.peers.split(",") if peer],
        cases=[Case(*case, direct=arguments.direct) for case in cases],
        rounds=arguments.rounds or (3 if quick else 7),
        scale=arguments.scale or (0.05 if quick else 1.0),
        reopen=not quick,
        python=arguments.python or not quick,
        optimised=not arguments.unoptimised,
    )


if __name__ == "__main__":
    main()
