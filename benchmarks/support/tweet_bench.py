"""The program that measures secondary indexes, `engine-bench secondary`.

It has all systems open in one process. In each round they take turns, each doing the same work, and
their results are compared with those that the generator expects.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, cast

from benchmarks.support.report import median
from foundation.json_types import JsonValue


class SystemTimes(TypedDict):
    """What a system needed for each round, and what it has written."""

    seconds: list[float]
    processor_seconds: list[float]
    #: By the system's count: in these rounds.
    written_bytes: int
    #: By the engine's count: since it was opened. 0 for a peer.
    engine_bytes: int


@dataclass(frozen=True, slots=True)
class TweetRounds:
    """The reply to a request: some rounds of the same number of operations."""

    operations: int
    #: Bytes of documents in requests that fill, results in queries.
    size: int
    systems: Mapping[str, SystemTimes]

    def micros(self, system: str) -> float:
        """Return the time per operation."""
        return median(self.systems[system]["seconds"]) / self.operations * 1e6

    def rate(self, system: str) -> float:
        """Return the operations per second, over all rounds."""
        seconds = self.systems[system]["seconds"]
        return self.operations * len(seconds) / sum(seconds)

    def ratio(self, above: str, below: str) -> float:
        """Return the median of the rounds' ratios of times."""
        pairs = zip(self.systems[above]["seconds"], self.systems[below]["seconds"], strict=True)
        return median([one / other for one, other in pairs])

    def total_ratio(self, above: str, below: str) -> float:
        """Return the ratio of the times of all rounds, which become longer as stores grow."""
        return sum(self.systems[above]["seconds"]) / sum(self.systems[below]["seconds"])

    def processor_ratio(self, above: str, below: str) -> float:
        """Return the ratio of the CPU times of all threads."""
        own = sum(self.systems[below]["processor_seconds"])
        return sum(self.systems[above]["processor_seconds"]) / max(own, 0.01)


class TweetBench:
    """The running program."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.systems: Sequence[str] = self._reply()["systems"]

    def measure(self, *words: object) -> TweetRounds:
        """Measure, as `native/engine_bench/src/secondary/tweet_bench.rs` describes."""
        reply = self._send(words)
        return TweetRounds(reply["operations"], reply["size"], reply["systems"])

    def usage(self, system: str) -> dict[str, JsonValue]:
        """Return how a collection and its index of users were used, by their own counters."""
        return self._send(["usage", system])

    def dump(self, path: Path) -> None:
        """Write `id user created updated` of all tweets to a file."""
        self._send(["dump", path])

    def _send(self, words: Sequence[object]) -> dict[str, Any]:
        if self._process.stdin is None:
            raise TypeError("the program has no input")
        self._process.stdin.write(" ".join(map(str, words)) + "\n")
        self._process.stdin.flush()
        return self._reply()

    def _reply(self) -> dict[str, Any]:
        if self._process.stdout is None:
            raise TypeError("the program has no output")
        line = self._process.stdout.readline()
        if not line:
            raise subprocess.CalledProcessError(self._process.wait(), self._process.args)
        return cast("dict[str, Any]", json.loads(line))


@contextmanager
def running_tweets(program: Path, directory: Path, documents: int) -> Iterator[TweetBench]:
    """Run the program until the block ends."""
    command = [str(program), "secondary", "--dir", str(directory), "--documents", str(documents)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield TweetBench(process)
        process.stdin.close() if process.stdin else None
