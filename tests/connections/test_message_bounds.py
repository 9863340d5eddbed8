"""A message takes little more memory than its bytes, whatever it contains."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.documents.collection import CollectionClient, make_collection
from tests.make import make_key
from tests.own_server import another_server
from tests.peak_memory import peak_memory
from tests.realtime.client import Client, greeted
from tests.rillbase_server.transport.raw import (
    deflated,
    frame,
    read_frame,
    read_response,
    send_all,
    upgrade,
)

CLIENTS, MOST_ADDED_MIB = 20, 256


@pytest.fixture
def things(server: str) -> CollectionClient:
    return make_collection(server)


def _digits(count: int) -> str:
    return ",".join(["1"] * count)


@pytest.mark.parametrize(
    ("member", "code"),
    [
        ("filter", "filter_too_large"),
        ("sort", "invalid_sort"),
        ("projection", "invalid_projection"),
        ("group", "invalid_group"),
        ("lookup", "invalid_lookup"),
    ],
)
def test_any_oversized_part_of_a_query_is_rejected(
    server: str, things: CollectionClient, member: str, code: str
) -> None:
    large = {"a": {"$in": [1] * 100_000}}
    with greeted(server, make_key(things.account.tenant)) as client:
        for kind in ("subscribe", "query"):
            # The name of the message follows its large part.
            client.send(**{member: large}, type=kind, id=kind, collection=things.name)
            error = _problem(client, kind)
            assert (error["code"], error["errors"][0]["pointer"]) == (code, f"/{member}")
    assert things.ask({member: large}).json()["code"] == code
    assert things.ask({"filter": {}}).status_code == 200


def _problem(client: Client, name: str) -> dict[str, Any]:
    error: dict[str, Any] = client.answer(name)["error"]
    return error


def test_unknown_members_are_listed_up_to_a_bound(server: str, things: CollectionClient) -> None:
    with greeted(server, make_key(things.account.tenant)) as client:
        client.send(
            type="subscribe", id="s", collection=things.name, **{f"m{n}": n for n in range(10_000)}
        )
        problems = _problem(client, "s")["errors"]
        assert isinstance(problems, list)
        assert len(problems) == 100


@pytest.mark.parametrize("kind", ["subscribe", "insert"])
def test_large_messages_of_many_clients_take_little_memory(
    things: CollectionClient, kind: str
) -> None:
    part = {"subscribe": "filter", "insert": "document"}[kind]
    head = json.dumps({"type": kind, "id": "s", "collection": things.name})[:-1]
    text = f'{head},"{part}":{{"a":{{"$in":[{_digits(15_000_000)}]}}}}}}'
    message = frame(deflated(text.encode()), deflated=True)
    with another_server() as other, ExitStack() as connections:
        clients = [connections.enter_context(_connected(other.url, things)) for _ in range(CLIENTS)]
        with peak_memory(other.process.pid) as memory:
            for client in clients:
                send_all(client, message)
            for client in clients:
                assert b"_too_large" in _next(client)
    assert memory.added_mib < MOST_ADDED_MIB


def _connected(url: str, things: CollectionClient) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", urlsplit(url).port or 80), timeout=60)
    key = f"Authorization: {things.caller.headers['Authorization']}"
    client.sendall(upgrade("/v1/realtime", "Sec-WebSocket-Protocol: rillbase.v1", key))
    _, behind = read_response(client)
    assert b"welcome" in read_frame(client, behind)[1]
    return client


def _next(client: socket.socket) -> bytes:
    """Return the next frame that is neither a ping nor a heartbeat."""
    behind = b""
    while True:
        opcode, payload, behind = read_frame(client, behind)
        if opcode == 1 and b"heartbeat" not in payload:
            return payload
