"""A client of `graphql-transport-ws`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

from tests.waiting import TIMEOUT_S

Message = dict[str, Any]


class GraphqlSocket:
    """One connection."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    def send(self, **message: object) -> None:
        self._connection.send(json.dumps(message))

    def next(self) -> Message:
        """Return the next message that is no sign of life."""
        while True:
            message: Message = json.loads(self._connection.recv(timeout=TIMEOUT_S))
            if message["type"] != "ping":
                return message

    def subscribe(self, name: str, query: str, **variables: object) -> None:
        self.send(type="subscribe", id=name, payload={"query": query, "variables": variables})

    def payload(self, name: str) -> Message:
        """Return the data of the next answer to an operation, which has no errors."""
        message = self.next()
        assert message["type"] == "next", message
        assert message["id"] == name
        assert "errors" not in message["payload"], message
        payload: Message = message["payload"]
        return payload

    def event(self, name: str, field: str) -> Message:
        """Return the next event of a subscription, skipping messages about its state."""
        while True:
            payload: Message = self.payload(name)["data"][field]
            if payload["kind"] not in ("READY", "STATUS"):
                return payload

    def until_ready(self, name: str, field: str) -> list[Message]:
        """Return what comes before a subscription is ready."""
        before: list[Message] = []
        while True:
            payload = self.payload(name)["data"][field]
            if payload["kind"] == "READY":
                return before
            before.append(payload)

    def closed(self) -> int:
        """Return the close code, once the server has closed."""
        with pytest.raises(ConnectionClosed) as closed:
            self._read_on()
        assert closed.value.rcvd is not None
        return closed.value.rcvd.code

    def _read_on(self) -> None:
        while True:
            self.next()


@contextmanager
def opened(base: str, headers: dict[str, str] | None = None) -> Iterator[GraphqlSocket]:
    """Connect, and say nothing yet."""
    url = base.replace("http", "ws", 1) + "/graphql"
    with connect(
        url,
        subprotocols=[Subprotocol("graphql-transport-ws")],
        additional_headers=headers or {},
        max_size=None,
    ) as connection:
        yield GraphqlSocket(connection)


@contextmanager
def greeted(base: str, **payload: str) -> Iterator[GraphqlSocket]:
    """Connect and greet with credentials."""
    with opened(base) as graphql_socket:
        graphql_socket.send(type="connection_init", payload=payload)
        assert graphql_socket.next() == {"type": "connection_ack"}
        yield graphql_socket
