"""``manage.py up``: starts Rillbase from an empty directory, and stops it in order.

The order of the checks decides which message a user gets: an instance that already runs here is
reported as such, not as the holder of the port; leftovers of a killed launcher are cleaned up
before the port is checked, since they may hold it.
"""

import asyncio
import time
from dataclasses import replace

from . import temporary_files
from .account import server_account
from .child_environment import allows_loopback_targets
from .console import Console, ProgressDisplay
from .data_directory import DataDirectory, disk_full, find_problem
from .declarations import declare
from .demo_login import hand_over, sign_in_link, store_login
from .disk_guard import DiskGuard, PostgresWrites
from .instance_lock import InstanceLock, lock_holder
from .leftovers import stop_leftovers
from .lifecycle import AT_REST, ServiceState
from .log_file import FULL_DISK_ERRORS
from .log_line import Level
from .open_files import raise_open_files
from .options import PROGRAM, UpOptions
from .panel import Row, example, panel, plain, watch
from .ports import free_port
from .preflight import (
    choose_processes_without_spark,
    embedded_servers_problem,
    external_server_problem,
    java_problem,
    missing_packages,
    port_problem,
    port_taken,
)
from .problems import ExitCode, LauncherProblem
from .process import boot_id
from .ready_file import write_ready_file
from .runner import NO_SPACE, Runner
from .secrets_file import DemoCredentials, Secrets, load_or_create
from .state_file import InstanceRecord, ServiceRecord, write_state
from .supervisor import ServiceFailed, ServiceSupervisor, StartInterrupted

ADDRESS_IN_USE = "address already in use"
LOOPBACK_NOTE = (
    "webhooks, key sets and sources may call this machine (RILLBASE_ALLOW_LOOPBACK_TARGETS)"
)


def up(options: UpOptions) -> ExitCode:
    """Run in the foreground until stopped."""
    began = time.monotonic()
    console = Console(verbose=options.verbose)
    directory = DataDirectory(options.data_dir)
    _raise(missing_packages())
    if note := choose_processes_without_spark():
        console.event(Level.INFO, note)
    _raise(java_problem())
    if warning := raise_open_files():
        console.event(Level.WARNING, warning)
    account = server_account()
    _raise(embedded_servers_problem(account))
    _raise(find_problem(directory, account))
    try:
        directory.create()
        lock = _take_lock(directory)
        try:
            return Instance(options, directory, console, began).run()
        finally:
            temporary_files.remove(directory)
            lock.release()
    except OSError as error:
        raise _file_problem(directory, error) or error from None


class Instance:
    """One run, during which the lock is held."""

    def __init__(
        self, options: UpOptions, directory: DataDirectory, console: Console, began: float
    ) -> None:
        self._options = options
        self._directory = directory
        self._console = console
        self._began = began
        self._running = False
        self._warned_of = ""
        # Messages that were already printed. An empty message means that no repair was needed.
        self._repairs = [""]
        self._supervisor: ServiceSupervisor | None = None

    def run(self) -> ExitCode:
        """Clean up, check, start, watch, stop."""
        self._forget_ready_file()
        for name in stop_leftovers(self._directory):
            self._console.report(f"Stopped leftover of an earlier launcher: {name}")
        if self._options.port == 0:
            self._options = replace(self._options, port=free_port(self._options.host))
        _raise(port_problem(self._options))
        _raise(external_server_problem())
        secrets = load_or_create(self._directory.secrets, data_exists=self._directory.has_data)
        secrets = hand_over(self._directory, secrets)
        return asyncio.run(self._supervise(secrets))

    async def _supervise(self, secrets: Secrets) -> ExitCode:
        supervisor = ServiceSupervisor(
            declare(
                self._options, self._directory, secrets, temporary_files.create(self._directory)
            ),
            self._directory.logs,
            on_change=self._on_change,
            on_line=self._on_line,
        )
        self._supervisor = supervisor
        supervisor.listen_to_signals()
        guard = self._disk_guard(supervisor)
        guard.check()
        watching: asyncio.Task[None] | None = None
        try:
            await self._start(supervisor)
            watching = asyncio.create_task(guard.run())
            link = sign_in_link(self._directory)
            secrets = store_login(self._directory, secrets)
            for runner in supervisor.runners:
                self._report_repair(runner)
            self._announce(secrets.demo if self._options.creates_demo else DemoCredentials(), link)
            self._running = True
            await supervisor.watch()
        except StartInterrupted:
            pass
        except ServiceFailed as failure:
            raise self._problem_of(failure.runner) from None
        finally:
            self._running = False
            self._forget_ready_file()
            # The last checkpoint may need the space of the reserve.
            guard.check()
            if watching is not None:
                watching.cancel()
            await self._stop(supervisor)
        return ExitCode.KILLED if supervisor.forced else ExitCode.OK

    def _disk_guard(self, supervisor: ServiceSupervisor) -> DiskGuard:
        postgres = [runner for runner in supervisor.runners if runner.service.name == "postgres"]

        def reload() -> None:
            for runner in postgres:
                runner.reload()

        def retry() -> None:
            for runner in supervisor.runners:
                runner.retry_now()

        def report(message: str, good: bool) -> None:  # noqa: FBT001 -- a callback
            self._console.event(Level.INFO if good else Level.ERROR, message)

        writes = PostgresWrites(self._directory.postgres / "data", server_account())
        return DiskGuard(self._directory, writes, reload=reload, retry=retry, report=report)

    async def _start(self, supervisor: ServiceSupervisor) -> None:
        self._console.report(f"Starting Rillbase in {self._directory.root}")
        async with ProgressDisplay(self._console, supervisor.runners):
            await supervisor.start_all()

    async def _stop(self, supervisor: ServiceSupervisor) -> None:
        self._console.report("Stopping (press Ctrl-C again to kill immediately)")
        running = [runner for runner in supervisor.runners if runner.state not in AT_REST]
        async with ProgressDisplay(self._console, running):
            await supervisor.stop_all()
        self._console.report("Stopped.")

    def _on_change(self, runner: Runner) -> None:
        if self._supervisor is None:
            return
        self._write_state(self._supervisor.runners)
        if self._running:
            self._report(runner)
        else:
            self._console.tick()

    def _write_state(self, runners: list[Runner]) -> None:
        try:
            write_state(self._directory.state, self._record(runners))
        except OSError as error:
            # Continue: running services must still be stopped in order, and a stale record does
            # little harm.
            self._warn_of_disk(error.strerror or str(error))

    def _warn_of_disk(self, failure: str) -> None:
        if self._warned_of != failure:
            self._warned_of = failure
            self._console.event(Level.ERROR, f"{failure}: logs and status are incomplete")

    def _report(self, runner: Runner) -> None:
        """Report a change that the user did not request."""
        self._report_repair(runner)
        life, name = runner.life, runner.service.name
        if life.state is ServiceState.BACKING_OFF and life.wake_at is not None:
            pause_s = life.wake_at - life.since
            message = f"{name} {life.reason}; restarting it in {pause_s:.1f} s"
            self._console.event(Level.WARNING, message)
        elif life.state is ServiceState.READY:
            suffix = " again" if life.restarts else ""
            self._console.event(Level.INFO, f"{name} is ready{suffix}")

    def _report_repair(self, runner: Runner) -> None:
        if runner.repair not in self._repairs:
            self._repairs.append(runner.repair)
            self._console.event(Level.WARNING, f"{runner.service.name}: {runner.repair}")

    def _on_line(self, runner: Runner, line: bytes) -> None:
        quiet = None if self._running or self._options.verbose else Level.WARNING
        self._console.log(runner.service.name, line, least=quiet)
        if runner.log.failure:
            self._warn_of_disk(runner.log.failure)

    def _record(self, runners: list[Runner]) -> InstanceRecord:
        # Lifecycles use the monotonic clock, which other processes that read the file do not share.
        offset = time.time() - time.monotonic()
        services = tuple(
            ServiceRecord(
                name=runner.service.name,
                state=runner.state,
                since=runner.life.since + offset,
                restarts=runner.life.restarts,
                stop_rank=runner.service.stop_rank,
                stop_signal=int(runner.service.stop_signal),
                log=str(runner.log.path),
                pid=runner.identity.pid if runner.identity else None,
                started=runner.identity.started if runner.identity else None,
                reason=runner.life.reason,
                repair=runner.repair,
                condition=runner.condition,
            )
            for runner in runners
        )
        return InstanceRecord(self._options.url, boot_id(), services)

    def _announce(self, demo: DemoCredentials, link: str) -> None:
        seconds = time.monotonic() - self._began
        if self._options.ready_file is not None:
            write_ready_file(self._options.ready_file, self._options, demo)
        if self._console.is_terminal:
            self._console.show(panel(self._options, demo, link, seconds, self._notes()))
        else:
            self._console.report(plain(self._options, demo, link, seconds, self._notes()))
        self._console.report(example(self._options, demo))
        if line := watch(self._options, demo):
            self._console.report(line)

    def _notes(self) -> list[Row]:
        """Return notes about unusual conditions, for the panel, since log lines scroll away."""
        notes = [("Repaired", repair) for repair in self._repairs if repair]
        if self._directory.write_stop.exists():
            notes.append(("Disk", "nearly full: writes are rejected until space is freed"))
        if allows_loopback_targets(self._options):
            notes.append(("Loopback", LOOPBACK_NOTE))
        return notes

    def _forget_ready_file(self) -> None:
        if self._options.ready_file is not None:
            self._options.ready_file.unlink(missing_ok=True)

    def _problem_of(self, runner: Runner) -> LauncherProblem:
        """Explain the failure of a service to the user."""
        output = "\n".join(runner.last_lines)
        if NO_SPACE in output:
            return disk_full(self._directory.root, f"{runner.service.name} could not write")
        if runner.service.name == "web" and ADDRESS_IN_USE in output.lower():
            return port_taken(self._options)
        lacking = (
            f" ({runner.lacking})" if runner.lacking and "not ready" in runner.life.reason else ""
        )
        last = "\n".join(f"    {line}" for line in runner.last_lines) or "    (nothing)"
        return LauncherProblem(
            ExitCode.SERVICE_FAILED,
            f"{runner.service.name} {runner.life.reason}{lacking}. Its last lines:\n{last}",
            f"The whole log: {runner.log.path}",
        )


def _file_problem(directory: DataDirectory, problem: OSError) -> LauncherProblem | None:
    if problem.errno in FULL_DISK_ERRORS:
        return disk_full(directory.root, problem.strerror or str(problem))
    if isinstance(problem, PermissionError) and problem.filename:
        return LauncherProblem(
            ExitCode.NOT_WRITABLE,
            f"No permission to access {problem.filename}.",
            "Correct its owner and permissions, or choose a different directory with --data-dir.",
        )
    return None


def _take_lock(directory: DataDirectory) -> InstanceLock:
    lock = InstanceLock.acquire(directory.lock)
    if lock is not None:
        return lock
    holder = lock_holder(directory.lock)
    who = f" (pid {holder.pid})" if holder else ""
    raise LauncherProblem(
        ExitCode.DATA_DIRECTORY_IN_USE,
        f"Rillbase is already running in {directory.root}{who}.",
        f"Stop it ({PROGRAM} stop --data-dir {directory.root}), or choose a different "
        "directory with --data-dir.",
    )


def _raise(problem: LauncherProblem | None) -> None:
    if problem is not None:
        raise problem
