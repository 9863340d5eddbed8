"""Runs the native program that measures engines, store after store, round after round.

Each run is a separate process over an empty directory. Stores take turns within a round, and each
round starts with another one, so that other load on the machine affects all of them equally.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

OURS = "rillbase"
# Live data is five times the total size of these.
MEMTABLE_BYTES = 16 << 20
CACHE_BYTES = 8 << 20
KEY_BYTES = 16
# The number of distinct keys hit by random puts, if there are as many puts as keys.
_SHARE_MET = 0.63
_READS = 400_000
# Memtables that our and RocksDB's leveled default accumulate before they merge them.
_UNMERGED = 4


@dataclass(frozen=True, slots=True)
class Case:
    """The parameters that all stores of a comparison share."""

    value_bytes: int
    compression: str
    threads: int
    direct: bool = False

    @property
    def label(self) -> str:
        """A short name for figures."""
        past = "_direct" if self.direct else ""
        return f"{self.value_bytes}_{self.compression}_t{self.threads}{past}"

    def rounds(self, scale: float, count: int) -> list[list[str]]:
        """The case's arguments for the native program, for each round.

        The number of unmerged runs when writing ends depends on how much was written, and each of
        them slows reads. So each round writes more than the one before, until the last one has
        written one more level's share of memtables: no store is always measured in its best state.
        """
        more = _UNMERGED * MEMTABLE_BYTES * scale
        return [self._arguments(scale, more * number / count) for number in range(count)]

    def _arguments(self, scale: float, more: float) -> list[str]:
        live = 5 * (MEMTABLE_BYTES + CACHE_BYTES) * scale + _SHARE_MET * more
        keys = int(live / _SHARE_MET / (KEY_BYTES + self.value_bytes))
        named = {
            "num": keys,
            "reads": max(2000, int(_READS * scale)),
            "value": self.value_bytes,
            "threads": self.threads,
            "compression": self.compression,
            "direct": int(self.direct),
            "memtable-bytes": int(MEMTABLE_BYTES * scale),
            "cache-bytes": int(CACHE_BYTES * scale),
        }
        return [word for name, value in named.items() for word in (f"--{name}", str(value))]


@dataclass(frozen=True, slots=True)
class Run:
    """What one store did in one round: a line for each workload."""

    store: str
    lines: dict[str, dict[str, float]]

    def seconds(self, workload: str) -> float:
        """The time per operation of a workload."""
        line = self.lines[workload]
        return line["seconds"] / line["operations"]

    def processor_seconds(self, workload: str) -> float:
        """CPU time of all threads per operation."""
        line = self.lines[workload]
        return line["processor_seconds"] / line["operations"]


@dataclass
class Driver:
    """The program, and the directory for databases."""

    program: Path
    directory: Path
    missing: set[str] = field(default_factory=set)

    def rounds(
        self, stores: Sequence[str], workloads: Sequence[str], rounds: Sequence[list[str]]
    ) -> Iterator[list[Run]]:
        """Yield the runs of each round, which has separate arguments.

        Stores whose library is missing are left out.
        """
        for number, arguments in enumerate(rounds):
            turn = number % len(stores)
            runs = []
            for store in (*stores[turn:], *stores[:turn]):
                if store in self.missing:
                    continue
                run = self._run(store, workloads, [*arguments, "--seed", str(number + 1)])
                if run is not None:
                    runs.append(run)
            _check_answers(runs)
            yield runs

    def _run(self, store: str, workloads: Sequence[str], arguments: list[str]) -> Run | None:
        database = self.directory / store
        shutil.rmtree(database, ignore_errors=True)
        command = [
            *(str(self.program), "--store", store, "--dir", str(database)),
            *("--workload", ",".join(workloads), *arguments),
        ]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        shutil.rmtree(database, ignore_errors=True)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        if any("missing" in line for line in lines):
            self.missing.add(store)
            return None
        run = Run(store, {line.pop("workload"): line for line in lines})
        took = (f"{name} {run.seconds(name) * 1e6:.2f}" for name in run.lines if name != "settle")
        print(f"  {store}, µs: {', '.join(took)}", file=sys.stderr, flush=True)
        return run


def _check_answers(runs: list[Run]) -> None:
    """Fail if stores with the same data returned different results."""
    for run in runs[1:]:
        for workload, line in run.lines.items():
            expected = runs[0].lines[workload]
            for name in ("found", "live_bytes"):
                if line.get(name) != expected.get(name):
                    message = (
                        f"{run.store} and {runs[0].store} disagree on {workload}: "
                        f"{line} and {expected}"
                    )
                    raise AssertionError(message)
