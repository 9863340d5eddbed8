"""Runs the stores of topics beside one another, natively (`native/pubsub/examples/pubsub_rate`)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, cast

#: Of a run at three subscriptions to a publication, records that are alive by operations done.
_LIVE_BYTES_AN_OPERATION = 39


class Measured(TypedDict):
    """One store, medians over the rounds."""

    system: str
    mean_us: float
    publish_us: float
    subscribe_us: float
    processor_us: float
    pairs: float
    entries_read: float
    blocks_read: float
    live_bytes: float
    delay_ms: float
    course_us: list[float]


class Answer(TypedDict):
    """All stores of a run; ratios are medians over pairs of another's time by the first one's."""

    polling_ceiling: float
    slower_than_first: dict[str, float]
    processor_by_first: dict[str, float]
    systems: list[Measured]


@dataclass(frozen=True, slots=True)
class Stores:
    """The program, and how much work it is given."""

    program: Path
    directory: Path
    operations: int
    rounds: int

    @property
    def memory_bytes(self) -> int:
        """Of memtable and of cache: a tenth, each, of what is alive at three to one."""
        return max(256 << 10, int(self.operations * _LIVE_BYTES_AN_OPERATION / 10))

    def run(self, mix: str, systems: Sequence[str], *more: str) -> Answer:
        """Do the same operations on each of the systems."""
        seconds = 40
        command = [
            str(self.program),
            *("--ops", str(self.operations), "--rounds", str(self.rounds)),
            *("--mix", mix, "--systems", ",".join(systems)),
            # Polls come for twenty seconds of the virtual clock, which must be half of it at most.
            *("--rate", str(max(1, self.operations // seconds))),
            *("--memory", str(self.memory_bytes >> 10)),
            *("--dir", str(self.directory / "stores")),
            *more,
        ]
        print(f"{mix} {' '.join(systems)} {' '.join(more)} …", file=sys.stderr, flush=True)
        # What the program says on its way is passed on.
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        return cast("Answer", json.loads(done.stdout.splitlines()[-1]))


def of(answer: Answer, system: str) -> Measured:
    """Return what was measured of a system."""
    return next(found for found in answer["systems"] if found["system"] == system)
