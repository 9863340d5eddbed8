"""How the Python SDK maintains its connection, with a server simulated by the test."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from rillbase import AsyncClient, ServerError

Message = dict[str, Any]
Answer = Callable[["Stage", ServerConnection, Message], Awaitable[None]]

pytestmark = pytest.mark.timeout(300)


class Stage:
    """A simulated server, and the messages that it received."""

    def __init__(self, answer: Answer) -> None:
        self.said: list[Message] = []
        self.url = ""
        self._answer = answer

    def all(self, kind: str) -> list[Message]:
        return [message for message in self.said if message["type"] == kind]

    async def play(self, socket: ServerConnection) -> None:
        try:
            async for text in socket:
                message = json.loads(text)
                self.said.append(message)
                await self._answer(self, socket, message)
        except ConnectionClosed:
            return


@asynccontextmanager
async def staged(answer: Answer) -> AsyncIterator[Stage]:
    stage = Stage(answer)
    protocols = [Subprotocol("rillbase.v1")]
    async with serve(stage.play, "127.0.0.1", 0, subprotocols=protocols) as server:
        (listener,) = server.sockets
        stage.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        yield stage


async def tell(socket: ServerConnection, kind: str, **members: object) -> None:
    await socket.send(json.dumps({"type": kind, **members}))


async def welcome(socket: ServerConnection) -> None:
    await tell(socket, "welcome", connection="c", heartbeat_ms=10_000)


async def result(socket: ServerConnection, name: str, resume: str) -> None:
    await tell(socket, "result", id=name, items=[], part=0, last=True, resume=resume)
    await tell(socket, "ready", id=name, resume=resume)


async def until_live(db: AsyncClient, holds: Callable[[], bool]) -> None:
    async for snapshot in db.collection("todos").watch():
        if snapshot.state == "live" and holds():
            return


async def test_an_expired_token_is_replaced_and_subscriptions_continue() -> None:
    async def answer(stage: Stage, socket: ServerConnection, message: Message) -> None:
        match message["type"]:
            case "hello":
                await welcome(socket)
            case "subscribe" if "resume" in message:
                await tell(socket, "ready", id=message["id"], resume="r2")
            case "subscribe":
                await result(socket, message["id"], "r1")
                error = {"code": "token_expired", "status": 401}
                await tell(socket, "end", id=message["id"], error=error)
            case "auth":
                await tell(socket, "ack", id=message["id"])
            case _:
                pass

    tokens = (f"token-{number}" for number in itertools.count(1))
    async with (
        staged(answer) as stage,
        AsyncClient(stage.url, key="rbp_k", get_token=lambda: next(tokens)) as db,
    ):
        await until_live(db, lambda: len(stage.all("subscribe")) == 2)
        assert stage.all("hello") == [{"type": "hello", "token": "token-1", "key": "rbp_k"}]
        assert [message["token"] for message in stage.all("auth")] == ["token-2"]
        assert stage.all("subscribe")[1]["resume"] == "r1"


async def test_credentials_that_are_refused_twice_end_the_subscription() -> None:
    async def answer(stage: Stage, socket: ServerConnection, message: Message) -> None:
        if message["type"] == "hello":
            await tell(socket, "error", id=None, error={"code": "malformed_key", "status": 401})
            await socket.close(4401)

    async with (
        staged(answer) as stage,
        AsyncClient(stage.url, key="rbp_k", get_token=lambda: "bad") as db,
    ):
        with pytest.raises(ServerError) as refused:
            await until_live(db, lambda: True)
        assert refused.value.code == "malformed_key"
        assert len(stage.all("hello")) == 2


async def test_after_goodbye_the_client_reconnects_and_resumes() -> None:
    async def answer(stage: Stage, socket: ServerConnection, message: Message) -> None:
        if message["type"] == "hello":
            await welcome(socket)
        elif message["type"] == "subscribe":
            await result(socket, message["id"], f"r{len(stage.all('subscribe'))}")
            if len(stage.all("hello")) == 1:
                await tell(socket, "goodbye", reconnect_in_ms=10)

    async with staged(answer) as stage, AsyncClient(stage.url, key="rbk_k") as db:
        await until_live(db, lambda: len(stage.all("hello")) == 2)
        assert [message.get("resume") for message in stage.all("subscribe")] == [None, "r1"]
