"""Messages of a client of `graphql-transport-ws`, and the closes that they can lead to."""

from __future__ import annotations

import asyncio

from connections import messages
from connections.connection_recorder import ConnectionRecorder
from foundation.api.problems import translate
from foundation.asgi import Receive, text_of
from foundation.errors import ApiError, InvalidBody
from foundation.json_body import parse_json_body
from foundation.json_types import JsonObject

MAX_MESSAGE_BYTES = 1024 * 1024


class CloseRequested(Exception):
    """A close code of the protocol, and its reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        # A close frame has room for 123 bytes.
        self.reason = reason.encode()[:120].decode(errors="ignore")


async def read_message(receive: Receive, recorder: ConnectionRecorder) -> JsonObject:
    """Return the next message. Raises ConnectionResetError once the client has disconnected."""
    received = await receive()
    if received["type"] == "websocket.disconnect":
        raise ConnectionResetError
    text = text_of(received)
    if text is None or len(text) > MAX_MESSAGE_BYTES:
        raise CloseRequested(4400, "A message must be text of at most 1 MiB")
    recorder.received(len(text))
    try:
        return object_of(parse_json_body(text))
    except ApiError:
        raise CloseRequested(4400, "Invalid message") from None


def id_of(message: JsonObject) -> str:
    """Return the id that the client chose for an operation."""
    name = message.get("id")
    if not isinstance(name, str) or not 0 < len(name) <= messages.MAX_ID_CHARS:
        raise CloseRequested(4400, "Invalid message: a subscription must have an id")
    return name


def object_of(value: object) -> JsonObject:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidBody("Expected an object.")
    return value


def close_request_after(reader: asyncio.Task[None]) -> CloseRequested | None:
    """Return why the server stopped reading from a connection; None if the client disconnected."""
    failed = reader.exception()
    if not isinstance(failed, Exception) or isinstance(failed, OSError):
        return None
    if isinstance(failed, CloseRequested):
        return failed
    return CloseRequested(4500, translate(failed).code)
