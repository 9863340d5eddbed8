"""A running Rillbase behind an unreliable network, and clients of every SDK."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.realtime.live.conftest import BackgroundProcesses, running
from tests.sdk.driver import Program, program
from tests.sdk.javascript import compiled
from tests.sdk.proxy import Proxy, through_proxy

if TYPE_CHECKING:
    from tests.documents.collection import CollectionClient

PYTHON_SDK = Path(__file__).resolve().parents[2] / "sdk" / "python"
#: Each SDK, as a program that the tests control.
PROGRAMS = ["javascript", "python"]


@pytest.fixture(scope="package")
def background(server: str, valkey_url: str) -> Iterator[BackgroundProcesses]:
    # Starting takes longer beside two browsers and compilers.
    with running(server, valkey_url) as background:
        yield background


@pytest.fixture
def todos(server: str, background: BackgroundProcesses) -> CollectionClient:
    # Models can be imported once Django has been set up.
    from tests.documents.collection import make_collection

    return make_collection(server)


@pytest.fixture
def network(server: str) -> Iterator[Proxy]:
    """The network between the client and the server."""
    with through_proxy(server) as proxy:
        yield proxy


@pytest.fixture(params=PROGRAMS)
def client(
    request: pytest.FixtureRequest, network: Proxy, todos: CollectionClient
) -> Iterator[Program]:
    """A client that reaches the server through the network, with the collection's own key."""
    argv = {
        # Node.js 22 has a WebSocket; in Node.js 20 this option enables it.
        "javascript": lambda: [
            "node",
            "--experimental-websocket",
            str(compiled() / "test" / "driver.js"),
        ],
        "python": lambda: [sys.executable, "-m", "tests.sdk.python_driver"],
    }
    paths = os.pathsep.join([os.environ["PYTHONPATH"], str(PYTHON_SDK)])
    with program(argv[request.param](), PYTHONPATH=paths) as client:
        client.send("open", "open", options=options_of(network, todos))
        yield client


def options_of(network: Proxy, todos: CollectionClient) -> dict[str, object]:
    key = todos.caller.headers["Authorization"].removeprefix("Bearer ")
    return {"url": network.url, "key": key, "silenceMs": 4000}
