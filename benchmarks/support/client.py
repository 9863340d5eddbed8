"""Shared code of the benchmarks' clients of `/v1/realtime` and `/graphql`."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

SUBSCRIPTIONS_A_CONNECTION = 500
MAX_FRAME_BYTES = 32 * 1024 * 1024
#: Buffers of a slow client: so many frames in the client, then in the connection.
QUEUE = 16
_SUBSCRIPTION = """subscription Watch($collection: String!, $filter: JSON) {
  documents(collection: $collection, filter: $filter) {
    kind items { key document } match node { key version document } state
  }
}"""


@dataclass(frozen=True, slots=True)
class Protocol:
    """How clients connect, subscribe and read."""

    connect: Callable[[int, str], Awaitable[ClientConnection]]
    #: Return the message that starts a subscription: its name, the collection, the filter.
    subscribe: Callable[[str, str, Mapping[str, object]], str]
    #: Return a message's kind, and the field `sent` of an event's document.
    read: Callable[[str | bytes], tuple[str, int]]


async def opened(
    port: int, key: str, *, queue: int = QUEUE, close_timeout_s: float = 10.0
) -> ClientConnection:
    """Connect with a key, and wait for the welcome."""
    connection = await _connect(port, key, "/v1/realtime", "rillbase.v1", queue, close_timeout_s)
    while (welcome := json.loads(await connection.recv()))["type"] == "heartbeat":
        # A very busy server may send its heartbeats first.
        pass
    if welcome["type"] != "welcome":
        raise RuntimeError(f"no welcome: {welcome}")
    return connection


async def _connect(
    port: int, key: str, path: str, subprotocol: str, queue: int, close_timeout_s: float
) -> ClientConnection:
    return await connect(
        f"ws://127.0.0.1:{port}{path}",
        subprotocols=[Subprotocol(subprotocol)],
        additional_headers={"Authorization": f"Bearer {key}"},
        compression=None,
        max_size=MAX_FRAME_BYTES,
        max_queue=queue,
        ping_interval=None,
        close_timeout=close_timeout_s,
    )


def subscribe(name: str, collection: str, condition: Mapping[str, object], resume: str = "") -> str:
    """Return the message that starts a subscription."""
    message = {
        "type": "subscribe",
        "id": name,
        "collection": collection,
        "filter": condition,
    }
    if resume:
        message["resume"] = resume
    return json.dumps(message)


def _read(text: str | bytes) -> tuple[str, int]:
    frame = json.loads(text)
    kind = frame["type"]
    return kind, frame["document"]["sent"] if kind == "event" else 0


async def _connect_graphql(port: int, key: str) -> ClientConnection:
    connection = await _connect(port, key, "/graphql", "graphql-transport-ws", QUEUE, 10.0)
    await connection.send('{"type": "connection_init"}')
    while (answer := json.loads(await connection.recv()))["type"] == "ping":
        pass
    if answer["type"] != "connection_ack":
        raise RuntimeError(f"not acknowledged: {answer}")
    return connection


def _subscribe_graphql(name: str, collection: str, condition: Mapping[str, object]) -> str:
    variables = {"collection": collection, "filter": condition}
    payload = {"query": _SUBSCRIPTION, "variables": variables}
    return json.dumps({"type": "subscribe", "id": name, "payload": payload})


def _read_graphql(text: str | bytes) -> tuple[str, int]:
    frame = json.loads(text)
    if frame["type"] != "next":
        return {"complete": "end"}.get(frame["type"], frame["type"]), 0
    event = frame["payload"]["data"]["documents"]
    kind = event["kind"].lower()
    return kind, event["node"]["document"]["sent"] if kind == "event" else 0


REALTIME = Protocol(opened, subscribe, _read)
GRAPHQL = Protocol(_connect_graphql, _subscribe_graphql, _read_graphql)


def insert(name: str, collection: str, document: Mapping[str, object]) -> str:
    """Return the message that inserts a document."""
    return json.dumps(
        {"type": "insert", "id": name, "collection": collection, "document": document}
    )
