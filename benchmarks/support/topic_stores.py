"""Runs the stores of topics alternately, natively (`native/pubsub/examples/pubsub_rate`).

A run of millions of operations takes minutes. The program reports intermediate results from time to
time, so that a terminated run (SIGTERM, as by `timeout`) still has some.
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

#: In a run with three subscriptions per publication, live records by operations done.
_LIVE_BYTES_AN_OPERATION = 39


class StoreResults(TypedDict):
    """One store, medians over the rounds."""

    system: str
    #: The share of the run that was done, and the number of sections.
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
    """All stores of a run; ratios are medians over pairs of the other's time divided by the first
    one's.
    """

    polling_ceiling: float
    slower_than_first: dict[str, float]
    processor_by_first: dict[str, float]
    systems: list[StoreResults]


class CutOffError(Exception):
    """The run was terminated before there was anything to compare."""


@dataclass(slots=True)
class Ending:
    """Whether this process was asked to end, and the program that ends first."""

    program: subprocess.Popen[str] | None = None
    _is_asked: bool = False

    def is_asked(self) -> bool:
        """Return whether it was asked to end."""
        return self._is_asked

    @contextmanager
    def awaited(self) -> Iterator[None]:
        """Handle the signal for the duration of the block."""
        before = signal.signal(signal.SIGTERM, self._ask)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)

    def _ask(self, _number: int, _frame: object) -> None:
        self._is_asked = True
        if self.program:
            self.program.terminate()


@dataclass(frozen=True, slots=True)
class Stores:
    """The program, and the amount of work."""

    program: Path
    directory: Path
    operations: int
    rounds: int
    ending: Ending = field(default_factory=Ending)

    @property
    def memory_bytes(self) -> int:
        """Of memtable and of cache: each a tenth of the live records at three to one."""
        return max(256 << 10, int(self.operations * _LIVE_BYTES_AN_OPERATION / 10))

    def run(self, mix: str, systems: Sequence[str], *more: str) -> Answer:
        """Run the same operations on each of the systems."""
        seconds = 40
        command = [
            str(self.program),
            *("--ops", str(self.operations), "--rounds", str(self.rounds)),
            *("--mix", mix, "--systems", ",".join(systems)),
            # Polls read twenty seconds of the virtual clock, which must be at most half of it.
            *("--rate", str(max(1, self.operations // seconds))),
            *("--memory", str(self.memory_bytes >> 10)),
            *("--dir", str(self.directory / "stores")),
            *more,
        ]
        print(f"{mix} {' '.join(systems)} {' '.join(more)} …", file=sys.stderr, flush=True)
        return self._newest(command)

    def _newest(self, command: Sequence[str]) -> Answer:
        """Return the program's last report, or the last one before it was ended."""
        if self.ending.is_asked():
            raise CutOffError
        newest = ""
        # Its progress reports for people are passed on.
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as program:
            self.ending.program = program
            for line in program.stdout or ():
                # An incomplete last line is ignored.
                if line.startswith("{") and line.endswith("}\n"):
                    newest = line
            status = program.wait()
            self.ending.program = None
        if status and not self.ending.is_asked():
            raise subprocess.CalledProcessError(status, command)
        if not newest:
            raise CutOffError
        return cast("Answer", json.loads(newest))


def of(answer: Answer, system: str) -> StoreResults:
    """Return the measurements of a system."""
    return next(figures for figures in answer["systems"] if figures["system"] == system)
