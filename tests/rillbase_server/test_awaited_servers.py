"""What a process waits for before it starts, and for how long."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import call_command

from rillbase_server.server_readiness import (
    AwaitedServer,
    ReadyServer,
    StorageNodeServer,
    wait_for_release,
)
from rillbase_server.version import VERSION
from tests.own_valkey import free_port


class UpgradedServer:
    """A server that is of one release after the other."""

    name = "a server"

    def __init__(self, *releases: str | OSError) -> None:
        self._releases = list(releases)

    def release(self) -> str:
        now = self._releases.pop(0)
        if isinstance(now, OSError):
            raise now
        return now


def test_available_servers_are_not_waited_for(server: str) -> None:
    output = StringIO()
    call_command("await_servers", "--storage", "--ready", server, stdout=output)
    assert output.getvalue().endswith("ready to start\n")
    assert "continuing without" not in output.getvalue()


def test_the_storage_node_and_servers_report_their_release(server: str) -> None:
    servers: list[AwaitedServer] = [StorageNodeServer(), ReadyServer(server)]
    for awaited in servers:
        assert wait_for_release(awaited, 60.0, print)
    assert StorageNodeServer().release() == VERSION


def test_an_older_server_is_waited_for_until_it_has_been_upgraded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rillbase_server.server_readiness.PAUSE_S", 0.0)
    output: list[str] = []
    upgraded = UpgradedServer("0.0.9", OSError("refused"), "99.0.0")
    assert wait_for_release(upgraded, 600.0, output.append)
    assert output == [
        "waiting for a server: it runs release 0.0.9",
        "waiting for a server: refused",
    ]


def test_the_wait_for_older_servers_is_limited() -> None:
    output = StringIO()
    nobody = f"http://127.0.0.1:{free_port()}"
    call_command("await_servers", "--ready", nobody, "--patience-s", "0", stdout=output)
    assert f"continuing without {nobody}" in output.getvalue()
    assert output.getvalue().endswith("ready to start\n")
