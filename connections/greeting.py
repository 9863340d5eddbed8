"""How a connection learns who its client is: from the handshake, or from `hello`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from connections import callers, messages
from connections.callers import ConnectionCaller, Handshake
from data_plane.request_reader import EJSON_HEADER, EJSON_PARAMETER, is_canonical
from foundation.errors import Unauthenticated

GREETING_S = 5.0


class Greeting(NamedTuple):
    """The caller of a connection, and the form in which it wants documents."""

    caller: ConnectionCaller
    #: Documents are sent as canonical Extended JSON.
    canonical: bool


async def greet(
    handshake: Handshake, next_message: Callable[[int], Awaitable[bytes | None]]
) -> Greeting | None:
    """Authenticate a client, or raise; None: it disconnected before it sent `hello`.

    `next_message` reads a message of at most so many bytes.
    """
    if handshake.has_credentials:
        canonical = is_canonical(handshake.head.headers.get(EJSON_HEADER), EJSON_HEADER)
        return Greeting(await callers.by_headers(handshake), canonical)
    try:
        async with asyncio.timeout(GREETING_S):
            text = await next_message(messages.MAX_FIRST_BYTES)
            if text is None:
                return None
            message = messages.read(text)
            if message.type != "hello":
                raise Unauthenticated("The first message must be `hello`, with a token.")
            canonical = is_canonical(message.text(EJSON_PARAMETER), EJSON_PARAMETER)
            caller = await callers.by_message(handshake, message, EJSON_PARAMETER)
            return Greeting(caller, canonical)
    except TimeoutError:
        raise Unauthenticated("The client did not send `hello` in time.") from None
