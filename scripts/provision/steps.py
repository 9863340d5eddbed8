"""Runs the programs of the setup: quiet on success, one line on failure.

Output goes to a log. A terminal shows the step with the seconds it has taken and the latest line
of that log; anything else (a file, CI) gets one line at the start, one every few seconds while
the step lasts, and one at the end.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from scripts.provision.problem import SetUpProblem

TICK_S = 0.2
PLAIN_REPORT_EVERY_S = 10.0
TAIL_BYTES = 4_096
# These would make the programs use another environment than the checkout's.
FOREIGN_VARIABLES = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "CONDA_PREFIX", "MAKEFLAGS")

Word: TypeAlias = str | Path
"""One word of a command line."""


class SetupSteps:
    """Shows steps one after the other and keeps their output in one log."""

    def __init__(self, log: Path) -> None:
        self.log = log
        self._live = sys.stdout.isatty()
        self._title, self._started, self._reported = "", 0.0, 0.0
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(b"")

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Show that a step runs, and how long it took if it succeeded."""
        started = time.monotonic()
        self._title, self._started, self._reported = title, started, started
        print(f"… {title}", end="\r" if self._live else "\n", flush=True)
        yield
        self._show(f"✓ {title} ({time.monotonic() - started:.1f} s)", end="\n")

    def attempt(self, command: Sequence[Word], **variables: str) -> bool:
        """Run a program to its end; false when it failed."""
        with self.log.open("ab") as output:
            output.write(f"$ {' '.join(map(str, command))}\n".encode())
            output.flush()
            process = subprocess.Popen(
                [str(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=_variables(variables),
            )
            return self._wait(process) == 0

    def run(self, command: Sequence[Word], **variables: str) -> None:
        """Run a program; raise if it fails."""
        if not self.attempt(command, **variables):
            raise self.failed()

    def failed(self, advice: str = "") -> SetUpProblem:
        """Return the problem that the current step has failed."""
        if self._live:
            self._show("", end="\r")
        reason = self._reason() or "no output"
        return SetUpProblem(f"{self._title} failed: {reason}{advice}\n  Log: {self.log}")

    def _wait(self, process: subprocess.Popen[bytes]) -> int:
        try:
            while True:
                try:
                    return process.wait(TICK_S)
                except subprocess.TimeoutExpired:
                    self._tick()
        except BaseException:
            process.terminate()
            process.wait()
            raise

    def _tick(self) -> None:
        now = time.monotonic()
        line = f"… {self._title} ({now - self._started:.0f} s) {self._last_line()}"
        if self._live:
            self._show(line, end="\r")
        elif now - self._reported >= PLAIN_REPORT_EVERY_S:
            self._reported = now
            print(line, flush=True)

    def _show(self, line: str, *, end: str) -> None:
        if self._live:
            width = shutil.get_terminal_size().columns - 1
            line = line[:width].ljust(width)
        print(line, end=end, flush=True)

    def _lines(self) -> list[str]:
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - TAIL_BYTES))
            text = log.read().decode(errors="replace")
        return [line.strip() for line in text.replace("\r", "\n").splitlines() if line.strip()]

    def _last_line(self) -> str:
        return self._lines()[-1]

    def _reason(self) -> str:
        """The first line of the last program's output that names an error, else its last line."""
        lines = self._lines()
        starts = [index for index, line in enumerate(lines) if line.startswith("$ ")]
        lines = lines[starts[-1] + 1 :] if starts else lines
        errors = [line for line in lines if "error" in line.lower()]
        return (errors or lines or [""])[0 if errors else -1]


def _variables(added: Mapping[str, str]) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name not in FOREIGN_VARIABLES}
    return {**inherited, **added}
