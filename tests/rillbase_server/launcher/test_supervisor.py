"""The supervisor with real, small programs."""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from rillbase_server.launcher.lifecycle import RestartPolicy, ServiceState
from rillbase_server.launcher.process import family, identify, waits_for_disk
from rillbase_server.launcher.readiness import file_renewed
from rillbase_server.launcher.runner import Runner
from rillbase_server.launcher.service import Check, ServiceSpec
from rillbase_server.launcher.supervisor import ServiceFailed, ServiceSupervisor

QUICK = RestartPolicy(start_deadline_s=20, stop_grace_s=0.2, first_delay_s=0.05, max_failures=2)
#: How often the life and the condition of a service are checked here.
INTERVAL_S = 0.5
SLEEP = "exec sleep 600"
DEAF = "trap '' TERM; echo up > {mark}; while :; do sleep 600 & wait; done"


@pytest.fixture(autouse=True)
def _checks_are_frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("INTERVAL_S", "CONDITION_INTERVAL_S"):
        monkeypatch.setattr(f"rillbase_server.launcher.runner.{name}", INTERVAL_S)


def exists(mark: Path) -> Check:
    async def check(_pid: int) -> str | None:
        return None if await asyncio.to_thread(mark.exists) else "no mark yet"

    return check


async def at_once(_pid: int) -> str | None:
    return None


def program(name: str, script: str, **declared: object) -> ServiceSpec:
    settings: dict[str, object] = {"check": at_once, "policy": QUICK} | declared
    argv = ("/bin/sh", "-c", script)
    return ServiceSpec(name=name, argv=argv, cwd=Path("/"), env=dict(os.environ), **settings)  # type: ignore[arg-type]


class Stage:
    """A supervisor whose events are recorded."""

    def __init__(self, logs: Path, services: list[ServiceSpec]) -> None:
        self.changes: list[tuple[str, ServiceState]] = []
        self.lines: list[bytes] = []
        self.supervisor = ServiceSupervisor(
            services, logs, on_change=self._changed, on_line=lambda _, line: self.lines.append(line)
        )

    def _changed(self, runner: Runner) -> None:
        self.changes.append((runner.service.name, runner.state))

    def runner(self, name: str) -> Runner:
        return next(r for r in self.supervisor.runners if r.service.name == name)

    async def watch_until(self, holds: Callable[[], bool]) -> None:
        watching = asyncio.create_task(self.supervisor.watch())
        deadline = time.monotonic() + 20
        while not holds() and not watching.done():
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
        if watching.done():
            await watching
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching


@asynccontextmanager
async def staged(logs: Path, *services: ServiceSpec) -> AsyncIterator[Stage]:
    stage = Stage(logs, list(services))
    try:
        yield stage
    finally:
        await stage.supervisor.stop_all()


async def test_services_start_after_their_dependencies_and_stop_by_rank(tmp_path: Path) -> None:
    mark = tmp_path / "prepared"
    services = (
        program("web", f"test -e {mark} && {SLEEP}", after=("prepare",), stop_rank=0),
        program(
            "prepare",
            f"touch {mark}",
            after=("store",),
            check=None,
            policy=RestartPolicy(one_shot=True),
            stop_rank=1,
        ),
        program("store", SLEEP, stop_rank=2),
    )
    async with staged(tmp_path, *services) as stage:
        await stage.supervisor.start_all()
        assert stage.runner("web").state is ServiceState.READY
        assert stage.runner("prepare").state is ServiceState.DONE
    stopped = [name for name, state in stage.changes if state is ServiceState.STOPPED]
    assert stopped == ["web", "store"]


async def test_a_service_that_dies_at_start_fails_the_start_and_leaves_its_last_words(
    tmp_path: Path,
) -> None:
    never = exists(tmp_path / "never")
    async with staged(tmp_path, program("web", "echo no luck; exit 3", check=never)) as stage:
        with pytest.raises(ServiceFailed, match="web exited with code 3"):
            await stage.supervisor.start_all()
        assert list(stage.runner("web").last_lines) == ["no luck"]
    assert (tmp_path / "web.log").read_text() == "no luck\n"


async def test_a_program_that_does_not_exist_fails_the_start(tmp_path: Path) -> None:
    missing = ServiceSpec(name="web", argv=("/no/such",), cwd=Path("/"), env={}, check=at_once)
    async with staged(tmp_path, missing) as stage:
        with pytest.raises(ServiceFailed):
            await stage.supervisor.start_all()
        assert "cannot start" in stage.runner("web").last_lines[0]


async def test_a_start_that_fails_temporarily_is_retried(tmp_path: Path) -> None:
    mark = tmp_path / "tried"
    script = f"test -e {mark} && {SLEEP}; touch {mark}; echo lock file exists; exit 1"
    ready = exists(mark)
    service = program("postgres", script, check=ready, transient_failures=("lock file",))
    async with staged(tmp_path, service) as stage:
        await stage.supervisor.start_all()
        assert stage.runner("postgres").life.state is ServiceState.READY


async def test_a_killed_service_is_restarted(tmp_path: Path) -> None:
    async with staged(tmp_path, program("web", SLEEP)) as stage:
        await stage.supervisor.start_all()
        web = stage.runner("web")
        assert web.identity is not None
        first = web.identity
        os.kill(first.pid, signal.SIGKILL)
        await stage.watch_until(lambda: web.state is ServiceState.READY and web.identity != first)
        assert web.life.restarts == 1


async def test_a_suspended_service_is_replaced(tmp_path: Path) -> None:
    sign = tmp_path / "sign"
    # Without children: a parent that waits for one to execute seems to wait for a disk.
    beating = f"import time\nwhile True: open('{sign}', 'w').close(); time.sleep(0.1)"
    policy = replace(QUICK, hung_after_s=3 * INTERVAL_S)
    script = f'exec {sys.executable} -c "{beating}"'
    web = program("web", script, alive=file_renewed(sign), policy=policy)
    async with staged(tmp_path, web) as stage:
        await stage.supervisor.start_all()
        runner = stage.runner("web")
        assert runner.identity is not None
        first = runner.identity
        os.killpg(first.pid, signal.SIGSTOP)
        await stage.watch_until(
            lambda: runner.state is ServiceState.READY and runner.identity != first
        )
        assert runner.life.restarts == 1
        assert identify(first.pid) is None


async def test_a_hung_service_is_killed_with_processes_of_other_sessions(tmp_path: Path) -> None:
    sign, mark = tmp_path / "sign", tmp_path / "descendant"
    script = (
        f"setsid sh -c 'echo $$ > {mark}; exec sleep 600' & "
        f"while :; do touch {sign}; sleep 0.1; done"
    )
    policy = replace(QUICK, hung_after_s=3 * INTERVAL_S)
    web = program("web", script, check=exists(mark), alive=file_renewed(sign), policy=policy)
    async with staged(tmp_path, web) as stage:
        await stage.supervisor.start_all()
        runner = stage.runner("web")
        first = runner.identity
        assert first is not None
        descendant = identify(int(mark.read_text()))
        assert descendant is not None
        assert os.getsid(descendant.pid) != os.getsid(first.pid)
        for process in family(first):
            process.suspend()
        await stage.watch_until(
            lambda: runner.state is ServiceState.READY and runner.identity != first
        )
        assert not descendant.is_running


STANDBY = """
if [ -n "$RILLBASE_STANDBY" ]; then echo $$ > {mark}; read line || exit; fi
exec sleep 600
"""


@pytest.fixture
async def with_standby(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Stage, Runner]]:
    """A service that has a standby, whose process ID is in the file `standby`."""
    monkeypatch.setattr("rillbase_server.launcher.runner.STANDBY_DELAY_S", 0.1)
    policy = replace(QUICK, max_failures=8)
    script = STANDBY.format(mark=tmp_path / "standby")
    web = program("web", script, has_standby=True, policy=policy)
    async with staged(tmp_path, web) as stage:
        await stage.supervisor.start_all()
        yield stage, stage.runner("web")


async def wait_for_standby(stage: Stage, mark: Path) -> int:
    """Wait for the process ID that a standby writes, and remove the file."""
    await stage.watch_until(lambda: mark.exists() and mark.read_text() != "")
    return take_number(mark)


def take_number(file: Path) -> int:
    number = int(file.read_text())
    file.unlink()
    return number


def process_id(runner: Runner) -> int:
    """The process that serves; 0 if none does."""
    if runner.state is not ServiceState.READY or runner.identity is None:
        return 0
    return runner.identity.pid


def is_process(runner: Runner, process: int) -> bool:
    return process_id(runner) == process


async def test_a_standby_replaces_a_killed_process(
    tmp_path: Path, with_standby: tuple[Stage, Runner]
) -> None:
    stage, runner = with_standby
    for _ in range(3):
        standby = await wait_for_standby(stage, tmp_path / "standby")
        assert process_id(runner) not in (0, standby)
        os.kill(process_id(runner), signal.SIGKILL)
        await stage.watch_until(partial(is_process, runner, standby))
    last = identify(await wait_for_standby(stage, tmp_path / "standby"))
    assert last is not None
    await stage.supervisor.stop_all()
    assert not last.is_running


async def test_a_service_is_restarted_without_its_standby(
    tmp_path: Path, with_standby: tuple[Stage, Runner]
) -> None:
    stage, runner = with_standby
    standby = await wait_for_standby(stage, tmp_path / "standby")
    first = process_id(runner)
    os.kill(standby, signal.SIGKILL)
    os.kill(first, signal.SIGKILL)
    await stage.watch_until(lambda: process_id(runner) not in (0, first))
    assert process_id(runner) != standby


async def test_a_service_that_waits_for_a_disk_is_not_killed_soon(tmp_path: Path) -> None:
    # A parent waits for the exec of a vforked child as for a disk.
    waiting = "import ctypes, time; ctypes.CDLL(None).vfork(); time.sleep(600)"
    policy = replace(QUICK, hung_after_s=INTERVAL_S)
    web = program(
        "web",
        f'exec {sys.executable} -c "{waiting}"',
        alive=file_renewed(tmp_path / "never"),
        policy=policy,
    )
    async with staged(tmp_path, web) as stage:
        runner = stage.runner("web")
        await stage.supervisor.start_all()
        assert runner.identity is not None
        end_s = time.monotonic() + 3 * INTERVAL_S + 0.5
        await stage.watch_until(lambda: time.monotonic() > end_s)
        assert waits_for_disk(runner.identity.pid)
        assert runner.life.restarts == 0


async def test_a_ready_service_can_report_a_problem(tmp_path: Path) -> None:
    async def degraded(_pid: int) -> str:
        return "grid down, watching 2, nodes 3"

    async with staged(tmp_path, program("web", SLEEP, condition=degraded)) as stage:
        await stage.supervisor.start_all()
        runner = stage.runner("web")
        await stage.watch_until(lambda: runner.condition == "grid down, watching 2, nodes 3")


async def test_a_service_that_keeps_dying_is_abandoned(tmp_path: Path) -> None:
    async with staged(tmp_path, program("web", "exec sleep 0.1")) as stage:
        await stage.supervisor.start_all()
        with pytest.raises(ServiceFailed):
            await stage.watch_until(lambda: False)
        assert stage.runner("web").life.restarts == QUICK.max_failures


@pytest.mark.parametrize(
    ("said", "declared"),
    [("no luck", {"essential": False}), ("No space left on device", {})],
)
async def test_optional_services_and_those_without_disk_space_are_never_abandoned(
    tmp_path: Path, said: str, declared: dict[str, object]
) -> None:
    mark = tmp_path / "well"
    mark.touch()
    script = f"test -e {mark} && {SLEEP}; echo {said}; exit 1"
    flaky = program("worker", script, check=exists(mark), **declared)
    async with staged(tmp_path, flaky) as stage:
        await stage.supervisor.start_all()
        worker = stage.runner("worker")
        mark.unlink()
        assert worker.identity is not None
        os.kill(worker.identity.pid, signal.SIGKILL)
        await stage.watch_until(lambda: worker.life.restarts > QUICK.max_failures + 1)
        mark.touch()
        await stage.watch_until(lambda: worker.state is ServiceState.READY)


async def test_a_process_that_ignores_the_stop_signal_is_killed_with_its_children(
    tmp_path: Path,
) -> None:
    mark, child = tmp_path / "mark", tmp_path / "child"
    script = f"sleep 600 & echo $! > {child}; " + DEAF.format(mark=mark)
    async with staged(tmp_path, program("worker", script, check=exists(mark))) as stage:
        await stage.supervisor.start_all()
        pid = int(child.read_text())
        assert identify(pid) is not None
    assert identify(pid) is None
    assert stage.runner("worker").state is ServiceState.STOPPED


async def test_a_second_request_to_stop_kills_without_waiting(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    patient = RestartPolicy(stop_grace_s=3600)
    deaf = program("web", DEAF.format(mark=mark), check=exists(mark), policy=patient)
    async with staged(tmp_path, deaf) as stage:
        await stage.supervisor.start_all()
        stage.supervisor.request_stop()
        stage.supervisor.request_stop()
    assert stage.supervisor.forced
    assert stage.runner("web").life.exit_code == -signal.SIGKILL


async def test_very_long_lines_are_forwarded_in_pieces(tmp_path: Path) -> None:
    long = "head -c 1000000 /dev/zero | tr '\\0' x; echo; echo end; " + SLEEP
    async with staged(tmp_path, program("web", long)) as stage:
        await stage.supervisor.start_all()
        await stage.watch_until(lambda: stage.lines[-1:] == [b"end"])
        assert sum(line.count(b"x") for line in stage.lines) == 1_000_000
        assert max(map(len, stage.lines)) < 200_000
