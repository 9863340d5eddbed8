"""Runs the stores of topics beside one another, natively (`native/pubsub/examples/pubsub_rate`).

A run of millions of operations takes minutes. Its program says from time to time what it has found
so far, so that a run that is terminated (SIGTERM, as by `timeout`) still has them.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict, cast

#: Of a run at three subscriptions to a publication, records that are alive by operations done.
_LIVE_BYTES_AN_OPERATION = 39


class Measured(TypedDict):
    """One store, medians over the rounds."""

    system: str
    #: How much of the run was done, and how many parts the whole has.
    done: float
    parts: float
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


class CutOffError(Exception):
    """This was terminated before there was anything to compare."""


@dataclass(slots=True)
class Ending:
    """Whether this process was asked to end, and the program that ends first."""

    program: subprocess.Popen[str] | None = None
    _asked: bool = False

    def is_asked(self) -> bool:
        """Return whether it was asked to end."""
        return self._asked

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Handle the signal for the duration of the block."""
        before = signal.signal(signal.SIGTERM, self._ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)

    def _ask(self, _number: int, _frame: object) -> None:
        self._asked = True
        if self.program:
            self.program.terminate()


@dataclass(frozen=True, slots=True)
class Stores:
    """The program, and how much work it is given."""

    program: Path
    directory: Path
    operations: int
    rounds: int
    ending: Ending = field(default_factory=Ending)

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
        return self._newest(command)

    def _newest(self, command: Sequence[str]) -> Answer:
        """Return what the program says last, or said until it was ended."""
        if self.ending.is_asked():
            raise CutOffError
        newest = ""
        # What it says on its way to people is passed on.
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
            self.ending.program = program
            for line in program.stdout or ():
                # A last line that was cut short is none.
                if line.startswith("{") and line.endswith("}\n"):
                    newest = line
            status = program.wait()
            self.ending.program = None
        if status and not self.ending.is_asked():
            raise subprocess.CalledProcessError(status, command)
        if not newest:
            raise CutOffError
        return cast("Answer", json.loads(newest))


def of(answer: Answer, system: str) -> Measured:
    """Return what was measured of a system."""
    return next(found for found in answer["systems"] if found["system"] == system)
