"""How the consumer of all WebSocket protocols handles messages, handshakes and failures."""

from __future__ import annotations

import asyncio

from channels.testing import WebsocketCommunicator

from connections.consumer import MessageHandover, Serve, WebSocketConsumer
from foundation.asgi import Receive, Send
from foundation.errors import NotFound


class ScriptedConsumer(WebSocketConsumer):
    """Serves connections as scripted by a test."""

    def __init__(self, serve: Serve | None) -> None:
        super().__init__()
        self._script = serve

    async def opened(self) -> Serve | None:
        if self._script is None:
            await self.refuse(NotFound())
            return None
        await self.send({"type": "websocket.accept"})
        return self._script


def connection(serve: Serve | None) -> WebsocketCommunicator:
    return WebsocketCommunicator(ScriptedConsumer.as_asgi(serve=serve), "/")


async def echo(receive: Receive, send: Send) -> None:
    while (message := await receive())["type"] != "websocket.disconnect":
        await send({"type": "websocket.send", "text": message["text"]})


async def test_messages_are_served_in_their_order_until_the_client_leaves() -> None:
    client = connection(echo)
    assert (await client.connect())[0]
    for number in range(3):
        await client.send_to(text_data=str(number))
    assert [await client.receive_from() for _ in range(3)] == ["0", "1", "2"]
    await client.disconnect()


async def test_a_refused_handshake_is_answered_with_a_problem() -> None:
    client = connection(None)
    await client.send_input({"type": "websocket.connect"})
    start = await client.receive_output()
    assert (start["type"], start["status"]) == ("websocket.http.response.start", 404)
    await client.wait()


async def test_a_connection_that_fails_is_closed() -> None:
    async def fail(receive: Receive, send: Send) -> None:
        await receive()
        raise LookupError

    client = connection(fail)
    await client.connect()
    await client.send_to(text_data="anything")
    assert await client.receive_output() == {"type": "websocket.close", "code": 1011}
    await client.disconnect()


async def test_the_tasks_of_a_connection_end_with_its_server() -> None:
    ended = asyncio.Event()

    async def wait_for_ever(receive: Receive, send: Send) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    client = connection(wait_for_ever)
    await client.connect()
    client.future.cancel()
    await asyncio.wait_for(ended.wait(), 5)


async def test_a_message_is_kept_until_the_next_one_is_requested() -> None:
    inbox = MessageHandover()
    first: dict[str, object] = {"type": "websocket.receive", "text": "first"}
    giving = asyncio.create_task(inbox.give(first))
    assert (await inbox.take())["text"] == "first"
    assert not first, "Channels would keep it until the next one arrives"
    await asyncio.sleep(0)
    assert not giving.done(), "it is still being worked on"
    taking = asyncio.create_task(inbox.take())
    await giving
    inbox.give_last({"type": "websocket.disconnect"})
    assert (await taking)["type"] == "websocket.disconnect"


async def test_nothing_waits_for_a_connection_that_is_over() -> None:
    inbox = MessageHandover()
    giving = asyncio.create_task(inbox.give({"type": "websocket.receive", "text": "unread"}))
    await asyncio.sleep(0)
    inbox.close()
    await giving


async def test_a_connection_ends_although_its_client_reads_no_close_frame() -> None:
    async def give_up(receive: Receive, send: Send) -> None:
        await receive()

    client = connection(give_up)
    await client.connect()
    await client.send_to(text_data="anything")
    await client.wait(5)
    assert client.future.cancelled()
