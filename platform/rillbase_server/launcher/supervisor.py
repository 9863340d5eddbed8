"""Runs the declared services: starts, restarts and stops them in order.

One event loop, one thread. The loop sleeps until there is an event: a child exits (SIGCHLD), a
timer is due, a check passes, or a stop is requested.
"""

import asyncio
import signal
import time
from collections.abc import Callable, Iterable
from itertools import groupby
from pathlib import Path

from .lifecycle import AT_REST, PrerequisitesReady, ServiceState, StopRequested
from .log_file import RotatingLogFile
from .runner import Runner, log_path
from .service import ServiceSpec

# The longest sleep. SIGCHLD wakes the loop earlier; this bounds the delay if one is lost.
LONGEST_SLEEP_S = 0.5
READY_STATES = frozenset({ServiceState.READY, ServiceState.DONE})


class ServiceFailed(Exception):
    """An essential service failed for good."""

    def __init__(self, runner: Runner) -> None:
        super().__init__(f"{runner.service.name} {runner.life.reason}")
        self.runner = runner


class StartInterrupted(Exception):
    """A stop was requested before every service was ready."""


class ServiceSupervisor:
    """The services of one data directory."""

    def __init__(
        self,
        services: Iterable[ServiceSpec],
        logs: Path,
        *,
        on_change: Callable[[Runner], None],
        on_line: Callable[[Runner, bytes], None],
    ) -> None:
        self.runners = [
            Runner(
                service,
                RotatingLogFile(log_path(logs, service)),
                on_change=self._runner_changed,
                on_line=on_line,
            )
            for service in services
        ]
        self._on_change = on_change
        self._wake = asyncio.Event()
        self._stop_asked = False
        self._forced = False

    def listen_to_signals(self) -> None:
        """Handle stop signals (kill on the second one) and exits of children."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # Respect `nohup`: if SIGHUP is ignored, keep running.
            if number is not signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, self.request_stop)
        loop.add_signal_handler(signal.SIGCHLD, self._wake.set)

    def request_stop(self) -> None:
        """Request an orderly stop; the second request kills."""
        self._forced = self._stop_asked
        self._stop_asked = True
        self._wake.set()

    @property
    def forced(self) -> bool:
        """Whether the stop was requested twice."""
        return self._forced

    async def start_all(self) -> None:
        """Start every service as soon as its prerequisites are ready; return when all awaited ones
        are ready. The others have been started by then.
        """
        while not all(map(_is_up, self.runners)):
            self._launch_unblocked()
            await self._process_events()
            self._raise_on_failure()
            if self._stop_asked:
                raise StartInterrupted

    async def watch(self) -> None:
        """Keep the services running until a stop is requested."""
        for runner in self.runners:
            runner.installation_was_up = True
        while not self._stop_asked:
            await self._process_events()
            self._raise_on_failure()

    async def stop_all(self) -> None:
        """Stop the services in order of rank, those of one rank together."""
        ranked = sorted(self.runners, key=lambda runner: runner.service.stop_rank)
        for _, group in groupby(ranked, key=lambda runner: runner.service.stop_rank):
            await self._stop_group(list(group))
        for runner in self.runners:
            runner.close()

    async def _stop_group(self, runners: list[Runner]) -> None:
        for runner in runners:
            runner.handle(StopRequested(force=self._forced))
        killed = self._forced
        while not all(runner.state in AT_REST for runner in runners):
            await self._process_events()
            if self._forced and not killed:
                killed = True
                for runner in runners:
                    runner.handle(StopRequested(force=True))

    async def _process_events(self) -> None:
        """Wait for events and process them."""
        now = time.monotonic()
        due = [r.life.wake_at for r in self.runners if r.life.wake_at is not None]
        sleep_s = min([LONGEST_SLEEP_S, *(max(0.0, moment - now) for moment in due)])
        try:
            async with asyncio.timeout(sleep_s):
                await self._wake.wait()
        except TimeoutError:
            pass
        self._wake.clear()
        for runner in self.runners:
            runner.collect()
            runner.fire_timer(time.monotonic())

    def _launch_unblocked(self) -> None:
        ready_names = {r.service.name for r in self.runners if r.state in READY_STATES}
        for runner in self.runners:
            if runner.state is ServiceState.DECLARED and ready_names.issuperset(
                runner.service.after
            ):
                runner.handle(PrerequisitesReady())

    def _runner_changed(self, runner: Runner) -> None:
        self._wake.set()
        self._on_change(runner)

    def _raise_on_failure(self) -> None:
        for runner in self.runners:
            if runner.state is ServiceState.FAILED:
                raise ServiceFailed(runner)


def _is_up(runner: Runner) -> bool:
    if runner.service.awaited:
        return runner.state in READY_STATES
    return runner.state is not ServiceState.DECLARED
