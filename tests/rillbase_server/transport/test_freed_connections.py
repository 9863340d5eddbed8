"""A connection that has ended is freed at once: the search for cycles of garbage runs rarely."""

from __future__ import annotations

import gc
import socket
import weakref
from collections.abc import Callable, Iterator

import pytest

from rillbase_server.transport.http_protocol import HttpProtocol
from rillbase_server.transport.websocket_protocol import WebSocketProtocol
from tests.rillbase_server.transport.raw import (
    close_code,
    frame,
    read_frame,
    read_response,
    upgrade,
)
from tests.rillbase_server.transport.serving import Echo, ServerUnderTest, serving
from tests.waiting import wait_until

REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.fixture
def without_garbage_collection() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def request(client: socket.socket) -> None:
    client.sendall(REQUEST)
    read_response(client)


def partial_request(client: socket.socket) -> None:
    client.sendall(REQUEST[:20])


def too_many_headers(client: socket.socket) -> None:
    client.sendall(b"GET / HTTP/1.1\r\n" + 200 * b"a: b\r\n" + b"\r\n")
    read_response(client)


def websocket(client: socket.socket) -> None:
    client.sendall(upgrade("/") + frame(b"abc"))
    _, behind = read_response(client)
    read_frame(client, behind)


def large_greeting(client: socket.socket) -> None:
    client.sendall(upgrade("/") + frame(b"a" * 9_000))
    _, behind = read_response(client)
    assert close_code(client, behind) == 1009


@pytest.mark.usefixtures("without_garbage_collection")
@pytest.mark.parametrize(
    "talk", [request, partial_request, too_many_headers, websocket, large_greeting]
)
def test_the_objects_of_a_connection_are_freed_when_it_ends(
    talk: Callable[[socket.socket], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    speakers = weakref.WeakSet[object]()
    for kind in (HttpProtocol, WebSocketProtocol):
        monkeypatch.setattr(kind, "__init__", _noting(kind.__init__, speakers))
    with serving(Echo()) as served:
        for _ in range(3):
            _talk_and_leave(served, talk)
        wait_until(lambda: not speakers, what="all protocols to be freed")


def _noting(init: Callable[..., None], speakers: weakref.WeakSet[object]) -> Callable[..., None]:
    def noting(self: object, *arguments: object, **options: object) -> None:
        speakers.add(self)
        init(self, *arguments, **options)

    return noting


def _talk_and_leave(served: ServerUnderTest, talk: Callable[[socket.socket], None]) -> None:
    with served.connect() as client:
        talk(client)
