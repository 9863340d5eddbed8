"""A Valkey connection for the event loop, for commands that every request sends.

Commands of all tasks share one connection and are pipelined (`foundation.resp_pipeline`). Measured,
a command costs about a tenth of what the general client takes. Everything rarer uses that client.
"""

from __future__ import annotations

import asyncio
import ssl
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from redis.exceptions import ConnectionError as ValkeyAway
from redis.exceptions import NoScriptError, RedisError, ResponseError

from foundation.resp_pipeline import Argument, RespPipeline
from foundation.resp_reader import RespReader

Reply = int | bytes | None | list["Reply"]
#: Valkey's own limit for the size of a string.
MAX_REPLY_BYTES = 512 * 1024 * 1024


class ValkeyWire:
    """Connects when it is first needed, and again after a failure. For one event loop."""

    def __init__(self, url: str, *, connect_timeout_s: float, answer_timeout_s: float) -> None:
        self._parts = urlsplit(url)
        self._connect_timeout_s = connect_timeout_s
        self._answer_timeout_s = answer_timeout_s
        self._protocol: _Protocol | None = None
        self._connecting: asyncio.Task[_Protocol] | None = None

    async def call(self, *command: Argument) -> Reply:
        """Send one command and return its reply; raise `RedisError` when there is none."""
        protocol = self._protocol
        if protocol is None or protocol.closed:
            protocol = await self._connect_once()
        return await protocol.call(*command)

    async def _connect_once(self) -> _Protocol:
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect())
            self._connecting.add_done_callback(self._connect_done)
        return await asyncio.shield(self._connecting)

    def _connect_done(self, task: asyncio.Task[_Protocol]) -> None:
        self._connecting = None
        if not task.cancelled() and task.exception() is None:
            self._protocol = task.result()

    async def _connect(self) -> _Protocol:
        protocol = _Protocol(asyncio.get_running_loop(), self._answer_timeout_s)
        try:
            async with asyncio.timeout(self._connect_timeout_s):
                await _open(protocol, self._parts)
                for command in greeting(self._parts):
                    await protocol.call(*command)
        except BaseException as error:
            protocol.close("not connected")
            if isinstance(error, (OSError, TimeoutError)):
                raise ValkeyAway(f"cannot connect: {error}") from None
            raise
        return protocol

    async def aclose(self) -> None:
        """Close the connection; calls that wait for a reply fail."""
        if self._connecting is not None:
            self._connecting.cancel()
        if self._protocol is not None:
            self._protocol.close("closed")
        # The transport closes in the loop's next iteration.
        await asyncio.sleep(0)


async def _open(protocol: _Protocol, parts: SplitResult) -> None:
    loop = asyncio.get_running_loop()
    if parts.scheme == "unix":
        await loop.create_unix_connection(lambda: protocol, parts.path)
    else:
        host, port = parts.hostname or "localhost", parts.port or 6379
        tls = tls_context(parts) if parts.scheme == "rediss" else None
        await loop.create_connection(lambda: protocol, host, port, ssl=tls)


def tls_context(parts: SplitResult) -> ssl.SSLContext:
    """Return the TLS context that verifies a server's name and certificate."""
    named = parse_qs(parts.query).get("ssl_ca_certs")
    return ssl.create_default_context(cafile=named[0] if named else None)


def greeting(parts: SplitResult) -> list[tuple[Argument, ...]]:
    """Return the commands that open a session with the server at a URL."""
    commands: list[tuple[Argument, ...]] = []
    if parts.password:
        user = (unquote(parts.username),) if parts.username else ()
        commands.append(("AUTH", *user, unquote(parts.password)))
    database = parts.path.lstrip("/")
    if parts.scheme != "unix" and database not in ("", "0"):
        commands.append(("SELECT", database))
    return commands


class _Protocol(RespPipeline[Reply]):
    """RESP2."""

    def __init__(self, loop: asyncio.AbstractEventLoop, answer_timeout_s: float) -> None:
        super().__init__(loop, answer_timeout_s, reply_reader())

    def unavailable(self, why: str) -> RedisError:
        return ValkeyAway(why)


def reply_reader() -> RespReader:
    """Return a reader of one connection's replies."""
    return RespReader(_error, max_reply_bytes=MAX_REPLY_BYTES)


def _error(text: str) -> ResponseError:
    return NoScriptError(text) if text.startswith("NOSCRIPT") else ResponseError(text)
