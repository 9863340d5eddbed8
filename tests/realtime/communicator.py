"""A connection to a server in this process without a socket, with the interface of a socket's."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from channels.testing import WebsocketCommunicator
from websockets.exceptions import ConnectionClosedError
from websockets.frames import Close

from tests.waiting import TIMEOUT_S

T = TypeVar("T")


class CommunicatorConnection:
    """Sends and receives text on the server's event loop."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        base: str,
        headers: dict[str, str],
        origin: str | None,
    ) -> None:
        self._loop = loop
        self._communicator = self._run(self._open(base, headers, origin))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._run(self._close())

    def send(self, text: str | bytes) -> None:
        member = "text" if isinstance(text, str) else "bytes"
        message = {"type": "websocket.receive", member: text}
        self._run(self._communicator.send_input(message))

    def recv(self, timeout: float | None = None) -> str:
        return self._run(self._receive(timeout), timeout)

    async def _open(
        self, base: str, headers: dict[str, str], origin: str | None
    ) -> WebsocketCommunicator:
        from rillbase_server.asgi import application

        address = urlsplit(base)
        named = {"host": address.netloc, **headers}
        if origin is not None:
            named["origin"] = origin
        raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in named.items()]
        protocols = ["rillbase.v1"]
        communicator = WebsocketCommunicator(
            application, "/v1/realtime", headers=raw, subprotocols=protocols
        )
        communicator.scope |= {
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "scheme": "ws",
            "client": ("127.0.0.1", 1),
            "server": (address.hostname or "", address.port),
            "state": {},
            "extensions": {"websocket.http.response": {}},
        }
        is_accepted, code = await communicator.connect(timeout=TIMEOUT_S)
        assert is_accepted, code
        return communicator

    async def _receive(self, timeout_s: float | None) -> str:
        # `receive_output` would end the connection when it times out.
        async with asyncio.timeout(timeout_s):
            message = await self._communicator.output_queue.get()
        if message["type"] == "websocket.close":
            await self._communicator.send_input({"type": "websocket.disconnect", "code": 1000})
            close = Close(message.get("code", 1000), message.get("reason") or "")
            raise ConnectionClosedError(close, None)
        text: str = message.get("text") or message["bytes"].decode()
        return text

    async def _close(self) -> None:
        await self._communicator.disconnect(timeout=TIMEOUT_S)

    def _run(self, work: Coroutine[Any, Any, T], timeout: float | None = None) -> T:
        waiting = asyncio.run_coroutine_threadsafe(work, self._loop)
        return waiting.result(None if timeout is None else timeout + TIMEOUT_S)
