"""What clients with compression receive, and what compression costs a connection that is idle."""

from __future__ import annotations

import pytest
from websockets.client import ClientProtocol
from websockets.extensions.permessage_deflate import (
    ClientPerMessageDeflateFactory,
    PerMessageDeflate,
)
from websockets.frames import Frame, Opcode
from websockets.sync.client import connect

from foundation.asgi import Receive, Scope, Send, text_of
from rillbase_server.transport.lazy_deflate import MIN_BYTES, LazyDeflate
from tests.rillbase_server.transport.serving import serving

LONG = "long " * 100
TEXTS = ["short", LONG, LONG, "x" * (MIN_BYTES - 1), "x" * MIN_BYTES, "é" * 3_000]


async def reply_with_everything(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] != "websocket.disconnect":
        text = text_of(message)
        assert text is not None
        await send({"type": "websocket.send", "text": text.decode()})


@pytest.mark.parametrize("server_no_context_takeover", [False, True])
@pytest.mark.parametrize("client_no_context_takeover", [False, True])
def test_clients_receive_what_was_sent(
    *, server_no_context_takeover: bool, client_no_context_takeover: bool
) -> None:
    compression = ClientPerMessageDeflateFactory(
        server_no_context_takeover=server_no_context_takeover,
        client_no_context_takeover=client_no_context_takeover,
    )
    with (
        serving(reply_with_everything) as served,
        connect(
            f"ws://127.0.0.1:{served.port}/", extensions=[compression], compression=None
        ) as client,
    ):
        assert isinstance(client.protocol, ClientProtocol)
        assert client.protocol.extensions
        for text in TEXTS:
            client.send(text)
            assert client.recv() == text


def test_only_messages_that_are_worth_it_are_compressed() -> None:
    deflate = LazyDeflate(PerMessageDeflate(False, False, 12, 12))
    short = Frame(Opcode.TEXT, b"x" * (MIN_BYTES - 1))
    assert deflate.encode(short) is short
    assert not hasattr(deflate, "encoder"), "an idle connection has no context"
    encoded = deflate.encode(Frame(Opcode.TEXT, b"x" * MIN_BYTES))
    assert encoded.rsv1
    assert len(encoded.data) < MIN_BYTES
    assert PerMessageDeflate(False, False, 12, 12).decode(encoded).data == b"x" * MIN_BYTES
