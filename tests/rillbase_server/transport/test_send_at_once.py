"""Which messages can be sent without waiting, and that clients receive them in their order."""

from __future__ import annotations

import asyncio

import pytest
from websockets.sync.client import connect

from foundation.asgi import CONNECTION, SEND_AT_ONCE, Receive, Scope, Send, SendAtOnce
from rillbase_server.transport.transport_limits import MAX_AT_ONCE_BYTES
from tests.rillbase_server.transport.serving import serving
from tests.waiting import wait_until

LONG = "é" * (MAX_AT_ONCE_BYTES // 2) + "x"


def at_once_of(scope: Scope) -> SendAtOnce:
    send_at_once: SendAtOnce = scope["extensions"][SEND_AT_ONCE]
    return send_at_once


@pytest.mark.parametrize("compression", [None, "deflate"])
def test_short_messages_are_sent_at_once_and_long_ones_are_not(compression: str | None) -> None:
    sent: list[bool] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        at_once = at_once_of(scope)
        await receive()
        sent.append(at_once(b"before the handshake"))
        await send({"type": "websocket.accept"})
        for text in ("first", "é" * 200, LONG, LONG[:-1], "last"):
            sent.append(at_once(text.encode()))
            if not sent[-1]:
                await send({"type": "websocket.send", "text": text})
        await send({"type": "websocket.close"})
        sent.append(at_once(b"after the end"))

    with (
        serving(application) as served,
        connect(f"ws://127.0.0.1:{served.port}/", compression=compression) as client,
    ):
        assert list(client) == ["first", "é" * 200, LONG, LONG[:-1], "last"]
    assert sent == [False, True, True, False, True, True, False]


def test_nothing_is_sent_at_once_while_the_client_does_not_read() -> None:
    counted: list[int] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        at_once, number = at_once_of(scope), 0
        await receive()
        await send({"type": "websocket.accept"})
        while at_once(b"%06d" % number + b"x" * 10_000):
            number += 1
            await asyncio.sleep(0)
        counted.append(number)
        # This waits for the client.
        await send({"type": "websocket.send", "text": "waited"})
        await send({"type": "websocket.close"})

    with (
        serving(application) as served,
        connect(f"ws://127.0.0.1:{served.port}/", compression=None, max_queue=1) as client,
    ):
        wait_until(lambda: bool(counted), what="the connection to be full")
        texts = list(client)
    (number,) = counted
    assert texts[-1] == "waited"
    assert [int(text[:6]) for text in texts[:-1]] == list(range(number))


def test_nothing_is_sent_at_once_over_a_connection_that_was_aborted() -> None:
    sent: list[bool] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        at_once = at_once_of(scope)
        await receive()
        await send({"type": "websocket.accept"})
        sent.append(at_once(b"open"))
        scope["extensions"][CONNECTION].owner.abort()
        sent.append(at_once(b"aborted"))

    with (
        serving(application) as served,
        connect(f"ws://127.0.0.1:{served.port}/", compression=None),
    ):
        wait_until(lambda: len(sent) == 2, what="both messages")
    assert sent == [True, False]
