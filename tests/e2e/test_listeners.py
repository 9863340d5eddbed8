"""All sockets of a running installation listen on loopback and require a secret."""

from __future__ import annotations

import json
import socket
import struct
import urllib.request
from collections.abc import Iterator
from urllib.error import HTTPError

import psutil
import pytest

from tests.foundation.test_spark import FOR_BLOCKS, FOR_ENDPOINT, PY4J_COMMAND, is_closed_to
from tests.launcher_process import LauncherDirectory
from tests.waiting import wait_until

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]
START_S = 240.0
SSL_REQUEST = struct.pack(">II", 8, 80_877_103)
POSTGRES_LOGIN = b"user\0postgres\0database\0postgres\0\0"
PASSWORD_WANTED = 10


def test_every_socket_is_on_loopback_and_requires_a_secret(
    launcher_directory: LauncherDirectory,
) -> None:
    with launcher_directory.up(RILLBASE_GRID="spark") as launched:
        wait_until(
            lambda: grid_watches(launcher_directory), what="the grid on Spark", timeout_s=START_S
        )
        result = dict(listeners(psutil.Process(launched.process.pid)))
        names = {process.name() for process in result.values()}
        assert any("java" in name for name in names)
        assert any("postgres" in name for name in names)
        assert any("valkey" in name for name in names)
        kinds = {port: protection(port) for port in result}
        assert "none" not in kinds.values(), {
            port: result[port].cmdline() for port, kind in kinds.items() if kind == "none"
        }
        assert set(kinds.values()) == {"postgres", "resp", "http", "spark", "py4j"}
        python = {
            port
            for port, process in result.items()
            if kinds[port] == "http" and {"background", "grid"} & set(process.cmdline())
        }
        assert len(python) == 2
        for port in python:
            assert {status(port, path) for path in ("/metrics", "/status")} == {401}


def grid_watches(launcher_directory: LauncherDirectory) -> bool:
    grid = launcher_directory.services()["grid"]
    return bool(grid["state"] == "ready" and not grid["condition"])


def listeners(launcher: psutil.Process) -> Iterator[tuple[int, psutil.Process]]:
    for process in [launcher, *launcher.children(recursive=True)]:
        for connection in process.net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN:
                address = connection.laddr.ip.removeprefix("::ffff:")
                assert address in ("127.0.0.1", "::1"), (address, process.cmdline())
                yield connection.laddr.port, process


def protection(port: int) -> str:
    """Return how a server responds to a client without any secret."""
    if answer(port, b"PING\r\n").startswith(b"-NOAUTH"):
        return "resp"
    if answer(port, SSL_REQUEST) == b"N":
        return "postgres" if wants_password(port) else "none"
    if answer(port, b"GET /healthz HTTP/1.0\r\n\r\n").startswith(b"HTTP/1"):
        return "http" if tells_strangers_nothing(port) else "none"
    if is_closed_to(port, FOR_BLOCKS) and is_closed_to(port, FOR_ENDPOINT):
        return "spark"
    # The gateway reads lines and waits without a response until there is one.
    waits = answer(port, FOR_BLOCKS) == answer(port, FOR_ENDPOINT) == b""
    return "py4j" if waits and is_closed_to(port, PY4J_COMMAND) else "none"


def answer(port: int, question: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=5.0) as connection:
        connection.sendall(question)
        try:
            return connection.recv(65_536)
        except (TimeoutError, ConnectionResetError):
            return b""


def wants_password(port: int) -> bool:
    login = struct.pack(">II", 8 + len(POSTGRES_LOGIN), 196_608) + POSTGRES_LOGIN
    reply = answer(port, login)
    return reply[:1] == b"R" and struct.unpack(">I", reply[5:9])[0] == PASSWORD_WANTED


def tells_strangers_nothing(port: int) -> bool:
    """Return whether requests without credentials are rejected."""
    return all(
        status(port, path) in (401, 403, 404)
        for path in ("/v1/collections/todos/documents", "/v1/tenants", "/admin/secrets", "/jobs")
    )


def status(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as reply:
            json.load(reply)
            return int(reply.status)
    except HTTPError as refused:
        return refused.code
