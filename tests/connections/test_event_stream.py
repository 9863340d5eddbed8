"""How a request is answered with server-sent events: opening, backpressure and hanging up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
from channels.testing import ApplicationCommunicator

from connections.callers import ConnectionCaller
from connections.connection_registry import ConnectionRegistry
from connections.event_stream_consumer import EventStreams
from connections.subscriptions import Subscriber, SubscriptionOutlet
from data_plane.calls import Call
from foundation import event_server
from foundation.errors import NotFound
from foundation.json_types import JsonObject
from foundation.limits import limiter
from rillbase_native import Value
from tenants.credentials import facts
from tenants.credentials.authenticate import key_principal
from tenants.credentials.credential_reference import CredentialReference
from tenants.principals import PrincipalKind as CredentialKind
from tests.make import make_key, make_tenant
from tests.waiting import until

REQUEST = {"type": "http.request", "body": b"", "more_body": False}
DISCONNECT = {"type": "http.disconnect"}


class ScriptedSubscription:
    """A kind of subscription, and the one subscription to it."""

    member = "anything"

    def __init__(self, *, raises: Exception | None = None, opens: bool = True) -> None:
        self._raises = raises
        self._opens = opens
        self.outlet: SubscriptionOutlet | None = None
        self.is_opening = self.is_cancelled = self.is_closed = False
        self.frames_left = 0

    async def open(
        self, subscriber: Subscriber, message: Value, outlet: SubscriptionOutlet
    ) -> ScriptedSubscription:
        if self._raises is not None:
            raise self._raises
        self.is_opening = True
        if not self._opens:
            try:
                await asyncio.Event().wait()
            finally:
                self.is_cancelled = True
        self.outlet = outlet
        return self

    def close(self) -> None:
        self.is_closed = True

    def unsubscribed(self) -> None:
        pass

    def drained(self, frames: int, size_bytes: int) -> None:
        self.frames_left += frames

    async def judge(self, subscriber: Subscriber) -> None:
        pass

    def describe(self) -> JsonObject:
        return {}

    def figures(self) -> JsonObject:
        return {}

    def send(self, number: int) -> None:
        assert self.outlet is not None
        self.outlet.send(b'{"type":"event","number":%d}' % number)


@pytest.fixture
def caller() -> ConnectionCaller:
    account = make_tenant()
    key = facts.key_facts(make_key(account.tenant).split("_")[2])
    principal = key_principal(key, CredentialKind.SECRET_KEY, {})
    reference = CredentialReference(CredentialKind.SECRET_KEY, "", key.tenant.slug, "127.0.0.1")
    return ConnectionCaller(principal, key.tenant, reference)


@pytest.fixture
async def registry() -> AsyncIterator[ConnectionRegistry]:
    yield ConnectionRegistry("tests")
    await event_server.close()
    await limiter().aclose()


def client_of(
    registry: ConnectionRegistry,
    caller: ConnectionCaller,
    kind: ScriptedSubscription,
    method: str = "GET",
) -> Any:
    answer = EventStreams(registry).answer(cast("Call", None), caller, kind, Value.parse(b"{}"))
    assert answer.app is not None
    scope = {"type": "http", "method": method, "path": "/", "headers": [], "state": {}}
    communicator: Any = ApplicationCommunicator
    return communicator(answer.app({"x-more": "1"}), scope)


async def start_stream(client: Any) -> None:
    await client.send_input(REQUEST)
    start = await client.receive_output()
    assert (start["type"], start["status"]) == ("http.response.start", 200)
    assert (b"content-type", b"text/event-stream") in start["headers"]
    assert (b"x-more", b"1") in start["headers"]
    assert (await client.receive_output())["body"].startswith(b"retry: ")


async def test_frames_arrive_as_events_until_the_client_hangs_up(
    registry: ConnectionRegistry, caller: ConnectionCaller
) -> None:
    kind = ScriptedSubscription()
    client = client_of(registry, caller, kind)
    await start_stream(client)
    kind.send(1)
    event = await client.receive_output()
    assert event["body"] == b'event: event\ndata: {"type":"event","number":1}\n\n'
    await client.send_input(DISCONNECT)
    await client.wait()
    assert kind.is_closed
    assert not registry.connections


async def test_a_disconnect_during_a_subscribe_cancels_it(
    registry: ConnectionRegistry, caller: ConnectionCaller
) -> None:
    kind = ScriptedSubscription(opens=False)
    client = client_of(registry, caller, kind)
    await client.send_input(REQUEST)
    await until(lambda: kind.is_opening, "the subscription to be opened")
    await client.send_input(DISCONNECT)
    await client.wait()
    assert kind.is_cancelled
    assert not registry.connections


async def test_an_error_before_the_first_byte_is_a_problem_document(
    registry: ConnectionRegistry, caller: ConnectionCaller
) -> None:
    client = client_of(registry, caller, ScriptedSubscription(raises=NotFound("There is none.")))
    await client.send_input(REQUEST)
    start = await client.receive_output()
    assert start["status"] == 404
    assert (b"content-type", b"application/problem+json") in start["headers"]
    assert (b"x-more", b"1") in start["headers"]
    assert json.loads((await client.receive_output())["body"])["detail"] == "There is none."
    await client.send_input(DISCONNECT)
    await client.wait()
    assert not registry.connections


async def test_a_body_is_rejected(registry: ConnectionRegistry, caller: ConnectionCaller) -> None:
    kind = ScriptedSubscription()
    client = client_of(registry, caller, kind)
    await client.send_input({"type": "http.request", "body": b"{}", "more_body": True})
    assert (await client.receive_output())["status"] == 413
    await client.receive_output()
    await client.wait()
    assert not kind.is_opening


async def test_a_frame_is_sent_once_the_client_has_read_it(
    registry: ConnectionRegistry, caller: ConnectionCaller
) -> None:
    kind, room, waiting = ScriptedSubscription(), asyncio.Semaphore(2), asyncio.Event()

    async def send(message: object) -> None:
        if room.locked():
            waiting.set()
        await room.acquire()

    messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    messages.put_nowait(REQUEST)
    answer = EventStreams(registry).answer(cast("Call", None), caller, kind, Value.parse(b"{}"))
    assert answer.app is not None
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "state": {}}
    serving = asyncio.ensure_future(answer.app({})(scope, messages.get, send))
    await until(lambda: kind.outlet is not None, "the subscription")
    kind.send(1)
    kind.send(2)
    await waiting.wait()
    assert kind.frames_left == 0, "the client has taken the head and the first line"
    room.release()
    await until(lambda: kind.frames_left == 1, "the first event to leave")
    room.release()
    await until(lambda: kind.frames_left == 2, "the second event to leave")
    messages.put_nowait(DISCONNECT)
    await serving


async def test_a_server_that_ends_in_a_hurry_ends_its_streams(
    registry: ConnectionRegistry, caller: ConnectionCaller
) -> None:
    kind = ScriptedSubscription()
    client = client_of(registry, caller, kind)
    await start_stream(client)
    client.future.cancel()
    await until(lambda: kind.is_closed, "the subscription to be closed")
    assert not registry.connections


async def test_a_head_request_leaves_no_subscription(
    registry: ConnectionRegistry, caller: ConnectionCaller
) -> None:
    kind = ScriptedSubscription()
    client = client_of(registry, caller, kind, "HEAD")
    await client.send_input(REQUEST)
    assert (await client.receive_output())["status"] == 200
    assert await client.receive_output() == {
        "type": "http.response.body",
        "body": b"",
        "more_body": False,
    }
    await client.send_input(DISCONNECT)
    await client.wait()
    assert kind.is_closed
    assert not registry.connections
