"""Processes of other accounts on the machine are rejected by a Spark application."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from foundation.spark import MissingSecret, private_connections

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 60.0
#: Spark's message type of a request, and a request for blocks that needs no serialized Java object.
RPC_REQUEST, OPEN_BLOCKS = 3, 0

pytestmark = pytest.mark.timeout(240)


@dataclass(frozen=True)
class Application:
    process: psutil.Process
    driver: int
    blocks: int

    @property
    def family(self) -> list[psutil.Process]:
        return [self.process, *self.process.children(recursive=True)]

    def ports(self) -> set[int]:
        listeners = [
            c for process in self.family for c in process.net_connections() if c.status == "LISTEN"
        ]
        assert {c.laddr.ip.removeprefix("::ffff:") for c in listeners} == {"127.0.0.1"}
        return {c.laddr.port for c in listeners}


@contextmanager
def running(*arguments: str, **variables: str) -> Iterator[Application]:
    """Run an application in separate processes."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.foundation.spark_application", *arguments],
        cwd=ROOT,
        env={**os.environ, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        ports = json.loads(process.stdout.readline())
        try:
            yield Application(psutil.Process(process.pid), ports["driver"], ports["blocks"])
        finally:
            process.stdin.close()
            process.wait(TIMEOUT_S)


def is_closed_to(port: int, message: bytes) -> bool:
    """Whether a server ends the connection after a message from an unauthenticated client.

    One that admits everyone answers with an error and continues to listen.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=5.0) as connection:
        connection.sendall(message)
        try:
            while connection.recv(65_536):
                pass
        except TimeoutError:
            return False
        except ConnectionResetError:
            return True
        return True


def question(body: bytes) -> bytes:
    frame = struct.pack(">BqI", RPC_REQUEST, 1, len(body)) + body
    return struct.pack(">Q", 8 + len(frame)) + frame


def text(value: str) -> bytes:
    return struct.pack(">I", len(value)) + value.encode()


FOR_BLOCKS = question(
    bytes([OPEN_BLOCKS]) + text("app") + text("driver") + struct.pack(">I", 1) + text("rdd_0_0")
)
#: The head of a message from an unknown sender to an endpoint; a serialized object would follow.
FOR_ENDPOINT = question(
    b"\0\1" + struct.pack(">H", 9) + b"127.0.0.1" + struct.pack(">I", 1) + b"\0\1x"
)
PY4J_COMMAND = b"r\nu\njava.lang.System\nrj\ne\n"


def test_a_driver_rejects_clients_without_its_secret() -> None:
    with running() as application:
        assert application.ports() >= {application.driver, application.blocks}
        assert is_closed_to(application.blocks, FOR_BLOCKS)
        assert is_closed_to(application.driver, FOR_ENDPOINT)
        (gateway,) = application.ports() - {application.driver, application.blocks}
        assert is_closed_to(gateway, PY4J_COMMAND)
        for process in application.family:
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            assert "authenticate.secret" not in " ".join(process.cmdline())
            assert "_SPARK_AUTH_SECRET" not in process.environ()


@pytest.mark.long
@pytest.mark.parametrize("secret", [[], ["a-wrong-secret"]], ids=["none", "wrong"])
def test_spark_itself_cannot_call_a_driver_without_the_right_secret(secret: list[str]) -> None:
    with running() as application:
        intruder = [sys.executable, "-m", "tests.foundation.spark_intruder"]
        ran = subprocess.run(
            [*intruder, str(application.driver), *secret],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            timeout=TIMEOUT_S,
            check=True,
        )
        assert ran.stdout.split()[-1] == "refused"


def test_a_local_driver_creates_its_own_secret_and_listens_on_loopback() -> None:
    options = private_connections("local[2]", "", "/tmp/rillbase-x")
    assert options["spark.driver.bindAddress"] == options["spark.driver.host"] == "127.0.0.1"
    assert "spark.authenticate.secret" not in options


def test_a_standalone_cluster_needs_the_secret_of_its_master() -> None:
    with pytest.raises(MissingSecret):
        private_connections("spark://host:7077", "", "/tmp/rillbase-x")
    options = private_connections("spark://host:7077", "s3cret", "/tmp/rillbase-x")
    assert options["spark.authenticate.secret"] == "s3cret"


@pytest.mark.parametrize("master", ["local[2]", "spark://host:7077", "k8s://https://host"])
def test_all_connections_are_authenticated_and_encrypted(master: str) -> None:
    options = private_connections(master, "s3cret", "/tmp/rillbase-x")
    assert options["spark.authenticate"] == options["spark.network.crypto.enabled"] == "true"
    assert options["spark.network.crypto.saslFallback"] == "false"


def test_workers_listen_behind_tcp_and_a_secret_where_the_path_of_a_socket_is_too_long() -> None:
    options = private_connections("local[2]", "", "/tmp/" + "x" * 100)
    assert not any("unix" in name for name in options)


@pytest.mark.parametrize("end", ["kill", "close"])
@pytest.mark.parametrize("name", ["short", "with spaces and too long for sockets"])
def test_an_application_leaves_no_temporary_files(tmp_path: Path, end: str, name: str) -> None:
    temporary = tmp_path / name
    temporary.mkdir()
    with running(end, TMPDIR=str(temporary)):
        (folder,) = temporary.iterdir()
        assert list(folder.glob("blockmgr-*"))
    assert list(temporary.iterdir()) == []
