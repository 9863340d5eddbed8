"""What the benchmarks' clients of `/v1/realtime` have in common."""

from __future__ import annotations

import json
from collections.abc import Mapping

from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Subprotocol

SUBSCRIPTIONS_A_CONNECTION = 500
MAX_FRAME_BYTES = 32 * 1024 * 1024
#: Of a client that is slow to read: so many frames wait in it, then in the connection.
QUEUE = 16


async def opened(
    port: int, key: str, *, queue: int = QUEUE, close_timeout_s: float = 10.0
) -> ClientConnection:
    """Connect with a key, and be welcomed."""
    connection = await connect(
        f"ws://127.0.0.1:{port}/v1/realtime",
        subprotocols=[Subprotocol("rillbase.v1")],
        additional_headers={"Authorization": f"Bearer {key}"},
        compression=None,
        max_size=MAX_FRAME_BYTES,
        max_queue=queue,
        ping_interval=None,
        close_timeout=close_timeout_s,
    )
    while (welcome := json.loads(await connection.recv()))["type"] == "heartbeat":
        # A server that is very busy may send its signs of life first.
        pass
    if welcome["type"] != "welcome":
        raise RuntimeError(f"no welcome: {welcome}")
    return connection


def subscribe(name: str, collection: str, wanted: Mapping[str, object], resume: str = "") -> str:
    """Return the message that begins a subscription."""
    asked = {
        "type": "subscribe",
        "id": name,
        "collection": collection,
        "filter": wanted,
    }
    if resume:
        asked["resume"] = resume
    return json.dumps(asked)


def insert(name: str, collection: str, document: Mapping[str, object]) -> str:
    """Return the message that inserts a document."""
    return json.dumps(
        {"type": "insert", "id": name, "collection": collection, "document": document}
    )
