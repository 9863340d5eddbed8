"""The states of a connection, and what a client may do in each."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from itertools import product
from typing import Any

import pytest
from channels.testing import WebsocketCommunicator

from connections.connection_registry import ConnectionRegistry
from connections.connection_state import TRANSITIONS, ConnectionPhase, IllegalTransition, step
from connections.consumer import RealtimeConsumer
from connections.products import Products
from connections.subscriptions import SubscriptionKinds
from foundation import event_server
from foundation.limits import limiter
from tests.make import make_key, make_tenant


@pytest.mark.parametrize(("state", "to"), list(product(ConnectionPhase, ConnectionPhase)))
def test_a_connection_makes_only_the_transitions_in_the_table(
    state: ConnectionPhase, to: ConnectionPhase
) -> None:
    if to in TRANSITIONS[state]:
        assert step(state, to) is to
    else:
        with pytest.raises(IllegalTransition):
            step(state, to)


def test_every_state_leads_to_the_end_and_none_leads_back_to_the_greeting() -> None:
    assert all(
        ConnectionPhase.CLOSED in TRANSITIONS[state]
        for state in ConnectionPhase
        if state is not ConnectionPhase.CLOSED
    )
    assert all(ConnectionPhase.GREETING not in following for following in TRANSITIONS.values())


@pytest.fixture
async def registry() -> AsyncIterator[ConnectionRegistry]:
    registry = ConnectionRegistry("tests")
    yield registry
    await registry.stop()
    await event_server.close()
    await limiter().aclose()


@pytest.fixture
def key() -> str:
    return make_key(make_tenant().tenant)


class Client:
    """A WebSocket connection without a network socket."""

    def __init__(self, registry: ConnectionRegistry) -> None:
        app = RealtimeConsumer.as_asgi(
            products=Products(SubscriptionKinds(), {}), registry=registry
        )
        self.socket = WebsocketCommunicator(app, "/v1/realtime", subprotocols=["rillbase.v1"])
        self.socket.scope.update(
            {"scheme": "ws", "state": {"request_id": "r"}, "client": ("127.0.0.1", 1)}
        )

    async def opened(self) -> Client:
        accepted, subprotocol = await self.socket.connect()
        assert (accepted, subprotocol) == (True, "rillbase.v1")
        return self

    async def ask(self, **message: object) -> dict[str, Any]:
        await self.socket.send_to(text_data=json.dumps(message))
        return await self.next()

    async def next(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(await self.socket.receive_from(timeout=30))
        return body

    async def close_code(self) -> int:
        frame = await self.socket.receive_output(timeout=30)
        assert frame["type"] == "websocket.close"
        await self.socket.disconnect()
        return int(frame["code"])


async def test_an_authenticated_caller_gets_one_welcome(
    registry: ConnectionRegistry, key: str
) -> None:
    client = await Client(registry).opened()
    assert (await client.ask(type="hello", token=key))["type"] == "welcome"
    (connection,) = registry.connections.values()
    assert connection.is_judged
    again = await client.ask(type="hello", id="1", token=key)
    assert (again["type"], again["error"]["code"]) == ("error", "invalid_body")
    assert (await client.ask(type="auth", id="2", token=key))["type"] == "ack"
    await client.socket.disconnect()
    assert not registry.connections


@pytest.mark.parametrize("kind", ["ping", "auth", "subscribe", "query"])
async def test_messages_before_hello_are_rejected(registry: ConnectionRegistry, kind: str) -> None:
    client = await Client(registry).opened()
    refusal = await client.ask(type=kind, id="1")
    assert refusal["error"]["status"] == 401
    assert await client.close_code() == 4401
    assert not registry.connections


async def test_a_client_that_leaves_before_hello_is_forgotten(
    registry: ConnectionRegistry,
) -> None:
    client = await Client(registry).opened()
    await client.socket.disconnect()
    assert not registry.connections
    assert not registry.tenants()
