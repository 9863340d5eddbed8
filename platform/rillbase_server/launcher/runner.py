"""One service with its process: carries out what ``lifecycle.advance`` decides.

A runner is used only on the launcher's event loop. All changes of the process are passed to
``handle`` as events; all decisions are made in ``lifecycle``.
"""

import asyncio
import os
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path

from .child import end_family, spawn
from .lifecycle import (
    AT_REST,
    WITH_PROCESS,
    BecameReady,
    Event,
    Lifecycle,
    ProcessExited,
    ServiceEffect,
    ServiceHung,
    ServiceState,
    TimerFired,
    advance,
)
from .line_reader import LineReader
from .liveness import CONDITION_INTERVAL_S, INTERVAL_S, Liveness
from .log_file import RotatingLogFile
from .process import ProcessIdentity, identify, kill_tree, waits_for_disk
from .service import Check, ServiceSpec
from .standby import VARIABLE as STANDBY_VARIABLE
from .standby import StandbyProcess

CHECK_INTERVAL_S = 0.05
LAST_LINES = 30
CANNOT_EXECUTE = 127
# When a service is ready, others may still be starting and need the CPU.
STANDBY_DELAY_S = 15.0
NO_SPACE = "No space left on device"


class Runner:
    """The process, log and current state of one service."""

    def __init__(
        self,
        service: ServiceSpec,
        log: RotatingLogFile,
        *,
        on_change: Callable[["Runner"], None],
        on_line: Callable[["Runner", bytes], None],
    ) -> None:
        self.service = service
        self.life = Lifecycle(since=time.monotonic())
        self.identity: ProcessIdentity | None = None
        self.last_lines: deque[str] = deque(maxlen=LAST_LINES)
        # What the readiness check reported as missing, and how long the last start or stop took.
        self.lacking = ""
        # What was repaired after a failed start, for display.
        self.repair = ""
        # Whether the installation has been up; after that, few failures are final.
        self.installation_was_up = False
        # The current problem of a ready service.
        self.condition = ""
        self.took_s: float | None = None
        self.log = log
        self._on_change = on_change
        self._on_line = on_line
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: LineReader | None = None
        self._standby: StandbyProcess | None = None
        self._standby_start: asyncio.TimerHandle | None = None
        self._check: asyncio.Task[None] | None = None
        self._watches: list[asyncio.Task[None]] = []

    @property
    def state(self) -> ServiceState:
        return self.life.state

    def handle(self, event: Event) -> None:
        """Process an event: advance the state, run the actions, report."""
        before, now = self.life, time.monotonic()
        self.life, effects = advance(self.service.policy, before, event, now)
        if self.state is not before.state:
            passing = before.state in (ServiceState.STARTING, ServiceState.STOPPING)
            self.took_s = now - before.since if passing else None
        if self.state not in WITH_PROCESS:
            self.identity = None
        if self.state is not ServiceState.STARTING:
            self._end_check()
        if self.state is not ServiceState.READY:
            self._end_watches()
        elif before.state is not ServiceState.READY:
            self._begin_watches()
            self._plan_standby()
        if self.state is ServiceState.STOPPING or self.state in AT_REST:
            self._end_standby()
        failure: ProcessExited | None = None
        for effect in effects:
            failure = self._carry_out(effect) or failure
        self._on_change(self)
        if failure is not None:
            self.handle(failure)

    def collect(self) -> None:
        """Handle the exit of the process, if it has exited."""
        process = self._process
        if process is None or process.poll() is None:
            return
        # Remaining processes of the leader (pool workers) must not outlive it.
        end_family(process.pid)
        if self._reader is not None:
            self._reader.drain()
        self._process = None
        output = "\n".join(self.last_lines)
        transient = any(phrase in output for phrase in self.service.transient_failures)
        transient = self._repair(output) or transient
        self.handle(ProcessExited(process.returncode, transient, self._is_retried_forever(output)))

    def reload(self) -> None:
        """Make a running process reload its configuration."""
        if self._process is not None and self.state in WITH_PROCESS:
            self._process.send_signal(signal.SIGHUP)

    def retry_now(self) -> None:
        """Retry a failed start now: its cause may have been removed."""
        if self.state is ServiceState.BACKING_OFF:
            self.handle(TimerFired())

    def fire_timer(self, now: float) -> None:
        """Fire the timer if it is due."""
        if self.life.wake_at is not None and now >= self.life.wake_at:
            self.handle(TimerFired())

    def close(self) -> None:
        """Close open files; the service must be stopped."""
        self._end_check()
        self._end_watches()
        self._end_standby()
        self._end_reader()
        self.log.close()

    def _carry_out(self, effect: ServiceEffect) -> ProcessExited | None:
        if effect is ServiceEffect.SPAWN:
            return self._spawn()
        if self._process is not None and effect is ServiceEffect.SIGNAL_STOP:
            self._process.send_signal(self.service.stop_signal)
        elif self.identity is not None:
            kill_tree(self.identity)
        return None

    def _spawn(self) -> ProcessExited | None:
        self._end_reader()
        self.last_lines.clear()
        try:
            self.service.before_start()
            self._process, reading = self._start_process()
        except OSError as error:
            self._add_line(f"cannot start: {error}".encode())
            forever = self._is_retried_forever(str(error))
            return ProcessExited(CANNOT_EXECUTE, retry_forever=forever)
        self.identity = identify(self._process.pid)
        self._begin_reader(reading)
        if self.service.check is not None:
            self._check = asyncio.create_task(self._check_until_ready(self._process.pid))
        return None

    def _start_process(self) -> tuple[subprocess.Popen[bytes], int]:
        """Return the process, and the descriptor from which its output is read."""
        standby, self._standby = self._standby, None
        if standby is not None and standby.take_over():
            return standby.process, standby.output
        reading, writing = os.pipe()
        try:
            return self._popen(writing), reading
        except OSError:
            os.close(reading)
            raise
        finally:
            os.close(writing)

    def _plan_standby(self) -> None:
        if self.service.has_standby and self._standby is None:
            loop = asyncio.get_running_loop()
            self._standby_start = loop.call_later(STANDBY_DELAY_S, self._start_standby)

    def _start_standby(self) -> None:
        self._standby_start = None
        if self.state is not ServiceState.READY:
            return
        variables = {STANDBY_VARIABLE: "1"}
        try:
            self._standby = StandbyProcess(
                lambda stdin, output: self._popen(output, stdin=stdin, variables=variables)
            )
        except OSError as error:
            self._add_line(f"no standby: {error}".encode())

    def _end_standby(self) -> None:
        if self._standby_start is not None:
            self._standby_start.cancel()
            self._standby_start = None
        if self._standby is not None:
            self._standby.end()
            self._standby = None

    def _repair(self, output: str) -> bool:
        """Repair the cause of a failed start, if possible."""
        if self.state is not ServiceState.STARTING:
            return False
        try:
            done = self.service.repair(output)
        except OSError as error:
            done = ""
            self._add_line(f"could not be repaired: {error}".encode())
        if done:
            self.repair = done
            self._add_line(done.encode())
        return bool(done)

    def _is_retried_forever(self, output: str) -> bool:
        """Return whether the installation should survive this exit."""
        service = self.service
        if not self.installation_was_up and service.awaited:
            return False
        return not service.essential or NO_SPACE in output

    def _popen(
        self,
        output: int,
        *,
        stdin: int = subprocess.DEVNULL,
        variables: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        return spawn(
            self.service.argv,
            cwd=self.service.cwd,
            env={**self.service.env, **(variables or {})},
            output=output,
            account=self.service.account,
            death_signal=self.service.stop_signal,
            stdin=stdin,
        )

    async def _check_until_ready(self, pid: int) -> None:
        check = self.service.check
        while check is not None:
            missing = await _run_check(check, pid)
            if missing is None:
                self._check = None
                self.handle(BecameReady())
                return
            self.lacking = missing
            await asyncio.sleep(CHECK_INTERVAL_S)

    def _begin_watches(self) -> None:
        identity, service = self.identity, self.service
        if identity is None:
            return
        if service.alive is not None:
            asking = self._watch_life(identity.pid, service.alive)
            self._watches.append(asyncio.create_task(asking))
        if service.condition is not None:
            asking = self._watch_condition(identity.pid, service.condition)
            self._watches.append(asyncio.create_task(asking))

    async def _watch_life(self, pid: int, alive: Check) -> None:
        liveness = Liveness(self.service.policy.hung_after_s)
        while True:
            answered = await _run_check(alive, pid) is None
            now, waits = time.monotonic(), waits_for_disk(pid)
            if liveness.record_check(now, answered=answered, waits_for_disk=waits):
                self.handle(ServiceHung(liveness.silent_s))
                return
            await asyncio.sleep(INTERVAL_S)

    async def _watch_condition(self, pid: int, condition: Check) -> None:
        while True:
            await asyncio.sleep(CONDITION_INTERVAL_S)
            condition_text = await _run_check(condition, pid) or ""
            if condition_text != self.condition:
                self.condition = condition_text
                self._on_change(self)

    def _begin_reader(self, descriptor: int) -> None:
        reader = LineReader(descriptor, self._add_line)
        self._reader = reader

        def readable() -> None:
            if not reader.read():
                self._end_reader()

        asyncio.get_running_loop().add_reader(descriptor, readable)

    def _add_line(self, line: bytes) -> None:
        self.log.write(line)
        self.last_lines.append(line.decode(errors="replace"))
        self._on_line(self, line)

    def _end_check(self) -> None:
        if self._check is not None:
            self._check.cancel()
            self._check = None

    def _end_watches(self) -> None:
        for task in self._watches:
            # One of these tasks may be the current one.
            if task is not asyncio.current_task():
                task.cancel()
        self._watches.clear()
        self.condition = ""

    def _end_reader(self) -> None:
        if self._reader is not None:
            asyncio.get_running_loop().remove_reader(self._reader.descriptor)
            os.close(self._reader.descriptor)
            self._reader = None


async def _run_check(check: Check, pid: int) -> str | None:
    try:
        return await check(pid)
    except OSError as error:
        return str(error) or type(error).__name__


def log_path(directory: Path, service: ServiceSpec) -> Path:
    """Return the log file of a service."""
    return directory / f"{service.name}.log"
