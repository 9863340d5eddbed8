"""Every way in which a start is refused: one message, its own exit code, nothing left running."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rillbase_server.launcher.data_directory import _space_problem
from rillbase_server.launcher.instance_lock import InstanceLock
from rillbase_server.launcher.problems import ExitCode
from tests.launcher_command import (
    ROOT,
    TIMEOUT_S,
    argv,
    environment,
    processes_below,
    reachable_directory,
    run,
)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root changes accounts")
OTHER_USER = 12_345


@pytest.fixture
def data() -> Iterator[Path]:
    with reachable_directory() as directory:
        yield directory / "data"


def assert_refused(
    answer: subprocess.CompletedProcess[str], code: ExitCode, *mentioned: object
) -> None:
    assert answer.returncode == code, answer.stderr
    assert answer.stderr.startswith("Error: ")
    assert "Traceback" not in answer.stderr
    for thing in mentioned:
        assert str(thing) in answer.stderr


def test_the_error_names_a_taken_port_its_process_and_a_solution(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = run("up", "--data-dir", data, "--port", port)
    assert_refused(answer, ExitCode.PORT_TAKEN, port, os.getpid(), "--port")
    assert processes_below(data) == []


def test_a_data_directory_in_use_is_rejected_with_the_pid_of_its_user(data: Path) -> None:
    (data / "run").mkdir(parents=True)
    lock = InstanceLock.acquire(data / "run" / "lock")
    assert lock is not None
    try:
        answer = run("up", "--data-dir", data, "--port", 0)
    finally:
        lock.release()
    assert_refused(answer, ExitCode.DATA_DIRECTORY_IN_USE, data, os.getpid())


@pytest.fixture
def broken_data(data: Path) -> Path:
    """A data directory whose PostgreSQL cannot start."""
    cluster = data / "postgres" / "data"
    cluster.mkdir(parents=True)
    (cluster / "PG_VERSION").write_text("9.6\n")
    names = ("secret_key", "key_pepper", "postgres_password", "valkey_password")
    (data / "secrets.json").write_text(json.dumps(dict.fromkeys(names, "x" * 40)))
    if os.geteuid() == 0:
        for path in (cluster.parent, cluster, cluster / "PG_VERSION"):
            os.chown(path, 65_534, 65_534)
    cluster.chmod(0o700)
    return data


def test_a_service_that_dies_at_start_shows_its_last_lines_and_its_log(broken_data: Path) -> None:
    answer = run("up", "--data-dir", broken_data, "--port", 0)
    log = broken_data / "logs" / "postgres.log"
    assert_refused(answer, ExitCode.SERVICE_FAILED, "postgres exited", log)
    assert processes_below(broken_data) == []


def test_a_reader_that_disconnects_affects_nothing_else(broken_data: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        answer = subprocess.run(
            argv("up", "--data-dir", broken_data, "--port", 0),
            env=environment(),
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    finally:
        os.close(writing)
    assert_refused(answer, ExitCode.SERVICE_FAILED, "postgres exited")
    assert processes_below(broken_data) == []


def test_a_path_that_is_not_a_directory_is_rejected(data: Path) -> None:
    data.write_text("a file")
    assert_refused(run("up", "--data-dir", data), ExitCode.NOT_WRITABLE, data)


@needs_root
def test_a_directory_of_another_user_is_refused(data: Path) -> None:
    data.mkdir()
    os.chown(data, OTHER_USER, OTHER_USER)
    assert_refused(run("up", "--data-dir", data), ExitCode.WRONG_OWNER, OTHER_USER, "root")


@needs_root
def test_root_gets_an_error_for_a_directory_that_the_servers_cannot_reach(data: Path) -> None:
    data.mkdir(mode=0o700)
    answer = run("up", "--data-dir", data / "below")
    assert_refused(answer, ExitCode.UNREACHABLE_FOR_SERVERS, "nobody", data)


def test_a_nearly_full_disk_is_refused() -> None:
    problem = _space_problem(100 * 1024 * 1024, Path("/data"))
    assert problem is not None
    assert problem.code is ExitCode.DISK_FULL
    assert _space_problem(300 * 1024 * 1024, Path("/data")) is None


def test_data_without_its_secrets_is_refused(data: Path) -> None:
    (data / "postgres" / "data").mkdir(parents=True)
    answer = run("up", "--data-dir", data, "--port", 0)
    assert_refused(answer, ExitCode.SECRETS_UNUSABLE, data / "secrets.json")


def test_the_error_names_an_unavailable_external_server(data: Path) -> None:
    env = environment(DATABASE_URL="postgresql://x:secret@127.0.0.1:1/x")
    answer = run("up", "--data-dir", data, "--port", 0, env=env)
    assert_refused(answer, ExitCode.EXTERNAL_SERVER_UNREACHABLE, "DATABASE_URL")
    assert "secret" not in answer.stderr


def test_a_host_of_another_machine_is_a_usage_error(data: Path) -> None:
    answer = run("up", "--data-dir", data, "--host", "192.0.2.1")
    assert_refused(answer, ExitCode.USAGE, "192.0.2.1", "--host")


@pytest.mark.parametrize(
    "arguments", [("up", "--port", "70000"), ("up", "--workers", "0"), ("up", "--what")]
)
def test_wrong_arguments_are_usage_errors(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).returncode == ExitCode.USAGE


def test_status_and_stop_report_if_nothing_runs(data: Path) -> None:
    for command in ("status", "stop"):
        answer = run(command, "--data-dir", data)
        assert answer.returncode == ExitCode.NOT_RUNNING
        assert "not running" in answer.stdout
    assert not data.exists()
    answer = run("status", "--json", "--data-dir", data)
    assert json.loads(answer.stdout)["running"] is False


def test_doctor_reports_a_taken_port_with_its_fix(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = run("doctor", "--data-dir", data, "--port", port)
    assert answer.returncode == ExitCode.PORT_TAKEN
    assert "choose a different port" in answer.stdout
    assert not data.exists()


def test_every_exit_code_is_documented() -> None:
    text = (ROOT / "docs" / "operations" / "launcher.md").read_text()
    documented = {int(row.split("|")[1]) for row in text.splitlines() if row[2:4].strip().isdigit()}
    assert documented == set(ExitCode)
