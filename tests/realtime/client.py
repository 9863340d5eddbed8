"""A client of `/v1/realtime` for tests: JSON both ways, and waiting for frames.

A server in this process is called without a socket, through Channels' communicator. Tests of the
socket itself (its bounds, a slow client, a cut network) ask for a real one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, ConnectionClosedError
from websockets.sync.client import ClientConnection, connect

from tests.realtime.communicator import CommunicatorConnection
from tests.server import LOOPS
from tests.waiting import TIMEOUT_S

Frame = dict[str, Any]


class Client:
    """One connection. Frames that were not asked for yet are kept."""

    def __init__(self, connection: ClientConnection | CommunicatorConnection) -> None:
        self._connection = connection
        self._kept: list[Frame] = []

    def send(self, **message: object) -> None:
        self.send_raw(json.dumps(message))

    def send_raw(self, text: str | bytes) -> None:
        self._connection.send(text)

    def next(self, timeout_s: float = TIMEOUT_S) -> Frame:
        """Return the next frame that is not a heartbeat."""
        if self._kept:
            return self._kept.pop(0)
        return self._receive(timeout_s)

    def _receive(self, timeout_s: float) -> Frame:
        while True:
            frame: Frame = json.loads(self._connection.recv(timeout=timeout_s))
            if frame["type"] != "heartbeat":
                return frame

    def wait_for(self, wanted: Callable[[Frame], bool], *, timeout_s: float = TIMEOUT_S) -> Frame:
        """Return the next matching frame; others are kept for later."""
        for place, frame in enumerate(self._kept):
            if wanted(frame):
                return self._kept.pop(place)
        while True:
            frame = self._receive(timeout_s)
            if wanted(frame):
                return frame
            self._kept.append(frame)

    def answer(self, message_id: str) -> Frame:
        """Return the answer to a message."""
        return self.wait_for(
            lambda f: f["type"] in ("ack", "error", "pong", "end") and f["id"] == message_id
        )

    def ask(self, kind: str, message_id: str, **members: object) -> Frame:
        self.send(type=kind, id=message_id, **members)
        return self.answer(message_id)

    def closed(self) -> tuple[int, str]:
        """Return the close code and reason, once the server has closed."""
        with pytest.raises(ConnectionClosed) as closed:
            self._receive_all()
        received = closed.value.rcvd
        assert received is not None
        return received.code, received.reason

    def closed_by_death(self) -> None:
        """Read until the connection breaks without a close frame."""
        with pytest.raises(ConnectionClosedError):
            self._receive_all()

    def _receive_all(self) -> None:
        while True:
            self._kept.append(self._receive(TIMEOUT_S))


@contextmanager
def opened(
    base: str,
    headers: dict[str, str] | None = None,
    *,
    origin: str | None = None,
    by_socket: bool = False,
) -> Iterator[Client]:
    """Open a connection, which has sent no `hello`."""
    if base in LOOPS and not by_socket:
        with CommunicatorConnection(LOOPS[base], base, headers or {}, origin) as communicator:
            yield Client(communicator)
        return
    address = base.replace("http", "ws", 1) + "/v1/realtime"
    with connect(
        address,
        additional_headers=headers,
        origin=None if origin is None else origin,  # type: ignore[arg-type]
        subprotocols=["rillbase.v1"],  # type: ignore[list-item]
        max_size=64 * 1024 * 1024,
        compression=None,
    ) as connection:
        yield Client(connection)


@contextmanager
def greeted(
    base: str, token: str, *, by_socket: bool = False, **members: object
) -> Iterator[Client]:
    """Open a connection and say `hello`."""
    with opened(base, by_socket=by_socket) as client:
        client.send(type="hello", token=token, **members)
        assert client.next()["type"] == "welcome"
        yield client
