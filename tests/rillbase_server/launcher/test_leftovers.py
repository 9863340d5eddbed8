"""What a killed launcher leaves behind, with real processes."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rillbase_server.launcher.data_directory import DataDirectory
from rillbase_server.launcher.leftovers import mark_of, stop_leftovers
from rillbase_server.launcher.process import ProcessIdentity, boot_id, identify
from rillbase_server.launcher.state_file import InstanceRecord, ServiceRecord, write_state


@pytest.fixture
def directory(tmp_path: Path) -> DataDirectory:
    directory = DataDirectory(tmp_path / "data")
    directory.create()
    return directory


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def record(identity: ProcessIdentity, *, boot: str | None = None) -> InstanceRecord:
    service = ServiceRecord(
        name="web",
        state="ready",
        since=0.0,
        restarts=0,
        stop_rank=0,
        stop_signal=int(signal.SIGTERM),
        log="",
        pid=identity.pid,
        started=identity.started,
    )
    return InstanceRecord("http://127.0.0.1:1", boot or boot_id(), (service,))


def identity_of(process: subprocess.Popen[bytes]) -> ProcessIdentity:
    identity = identify(process.pid)
    assert identity is not None
    return identity


def test_a_recorded_process_is_stopped_by_its_own_signal(
    directory: DataDirectory, sleeper: subprocess.Popen[bytes]
) -> None:
    write_state(directory.state, record(identity_of(sleeper)))
    assert stop_leftovers(directory) == [f"web (pid {sleeper.pid})"]
    assert sleeper.wait() == -signal.SIGTERM


def test_a_pid_that_belongs_to_another_process_now_is_left_alone(
    directory: DataDirectory, sleeper: subprocess.Popen[bytes]
) -> None:
    identity = identity_of(sleeper)
    older = ProcessIdentity(identity.pid, identity.started - 1)
    write_state(directory.state, record(older))
    assert stop_leftovers(directory) == []
    assert sleeper.poll() is None


def test_a_record_of_an_earlier_boot_is_left_alone(
    directory: DataDirectory, sleeper: subprocess.Popen[bytes]
) -> None:
    write_state(directory.state, record(identity_of(sleeper), boot="another boot"))
    assert stop_leftovers(directory) == []
    assert sleeper.poll() is None


def test_an_orphaned_grandchild_is_found_by_its_environment(directory: DataDirectory) -> None:
    pid = _orphan(dict(os.environ) | mark_of(directory))
    assert identify(pid) is not None
    assert stop_leftovers(directory) == [f"an orphaned process (pid {pid})"]
    assert identify(pid) is None


def test_processes_of_other_data_directories_are_left_alone(
    directory: DataDirectory, tmp_path: Path
) -> None:
    pid = _orphan(dict(os.environ) | mark_of(DataDirectory(tmp_path / "other")))
    try:
        assert stop_leftovers(directory) == []
        assert identify(pid) is not None
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_process_that_ignores_the_signal_is_killed(directory: DataDirectory) -> None:
    script = "trap '' TERM; echo deaf; while :; do sleep 600 & wait; done"
    with subprocess.Popen(
        ["sh", "-c", script],
        stdout=subprocess.PIPE,
        env=dict(os.environ) | mark_of(directory),
        start_new_session=True,
    ) as deaf:
        assert deaf.stdout is not None
        assert deaf.stdout.readline() == b"deaf\n"
        write_state(directory.state, record(identity_of(deaf)))
        stop_leftovers(directory, grace_s=0.1)
        assert deaf.wait() == -signal.SIGKILL


def _orphan(environment: dict[str, str]) -> int:
    """A process whose parent has ended, as pool workers are whose leader was killed."""
    script = "sleep 600 > /dev/null 2>&1 & echo $!"
    return int(subprocess.check_output(["sh", "-c", script], env=environment))
