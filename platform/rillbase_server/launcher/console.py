"""The terminal output: progress while starting, the panel, then one merged log.

On a terminal, the progress is a table that is redrawn in place; otherwise (a file, CI) it is one
plain line for each change, without control characters. There are no threads: the launcher calls
``tick`` from its loop.
"""

import asyncio
import io
import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

from rich.console import Console as RichConsole
from rich.console import RenderableType
from rich.live import Live
from rich.markup import escape
from rich.text import Text

from .lifecycle import ServiceState
from .log_line import Level, LogLine, parse, render
from .progress import progress_line, progress_table
from .runner import Runner

REDRAW_S = 0.1


class _RichConsole(RichConsole):
    """Raises errors of a closed output for ``Console`` to handle; rich would exit the program."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


class Console:
    """All of the launcher's terminal output."""

    def __init__(self, *, verbose: bool = False) -> None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            # Print "?" for characters that the terminal's encoding lacks, instead of failing.
            sys.stdout.reconfigure(errors="replace")
        self._rich = _RichConsole(file=sys.stdout, highlight=False)
        self.is_terminal = self._rich.is_terminal
        self._colour = self.is_terminal and not self._rich.no_color
        self._least = Level.DEBUG if verbose else Level.INFO
        self._live: Live | None = None
        self._runners: list[Runner] = []
        self._seen: dict[str, ServiceState] = {}
        self._is_closed = False

    def report(self, text: str) -> None:
        """Print a line of the launcher."""
        self._show(lambda: self._rich.print(escape(text), soft_wrap=True))

    def show(self, renderable: RenderableType) -> None:
        """Print a rich renderable."""
        self._show(lambda: self._rich.print(renderable))

    def begin_progress(self, runners: list[Runner]) -> None:
        """Start showing the progress of services that start or stop."""
        self._runners = runners
        self._seen = {runner.service.name: runner.state for runner in runners}
        if self.is_terminal:
            self._live = Live(console=self._rich, auto_refresh=False)
            self._show(self._live.start)

    def tick(self) -> None:
        """Update the progress."""
        now = time.monotonic()
        live = self._live
        if live is not None:
            self._show(lambda: live.update(progress_table(self._runners, now), refresh=True))
            return
        for runner in self._runners:
            if self._seen.get(runner.service.name) is not runner.state:
                self._seen[runner.service.name] = runner.state
                self.report(progress_line(runner))

    def end_progress(self) -> None:
        """Stop updating, and leave the last progress on the screen."""
        live, self._live = self._live, None
        if live is not None:
            self._show(live.stop)

    def log(self, service: str, raw: bytes, *, least: Level | None = None) -> None:
        """Print a log line of a service, unless it is below the displayed level."""
        line = parse(raw)
        if line.level >= (least or self._least) and line.message:
            self._print_line(line, service)

    def event(self, level: Level, message: str) -> None:
        """Print an event of the launcher while services run."""
        self._print_line(LogLine(level, message), "launcher")

    def _print_line(self, line: LogLine, service: str) -> None:
        now = datetime.now(UTC).strftime("%H:%M:%S.%f")[:-3]
        text = render(line, service, now, colour=self._colour)
        if self._live is None:
            self._show(lambda: _write(text))
        else:
            self._show(lambda: self._rich.print(Text.from_ansi(text), soft_wrap=True))

    def _show(self, show: Callable[[], object]) -> None:
        """Ignore errors of a closed terminal: the log files are complete."""
        if self._is_closed:
            return
        try:
            show()
        except OSError:
            self._is_closed = True
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)


class ProgressDisplay:
    """Displays the progress while services start or stop."""

    def __init__(self, console: Console, runners: list[Runner]) -> None:
        self._console = console
        self._runners = runners
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> None:
        self._console.begin_progress(self._runners)
        self._task = asyncio.create_task(self._redraw())

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        self._console.tick()
        self._console.end_progress()

    async def _redraw(self) -> None:
        while True:
            self._console.tick()
            await asyncio.sleep(REDRAW_S)


def _write(text: str) -> None:
    # rich would cost more than the rest of the processing, and there may be thousands of lines.
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
