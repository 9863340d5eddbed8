"""The ASGI types in use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

#: The scope extension in which Rillbase's own server passes the connection of the request.
CONNECTION = "rillbase.connection"


#: The scope extension with which Rillbase's own server sends a WebSocket's text without waiting.
SEND_AT_ONCE = "rillbase.send_at_once"
#: Sends a text message as UTF-8; returns False, and sends nothing, if it has to be sent by `Send`.
SendAtOnce = Callable[[bytes], bool]


class TransportConnection(Protocol):
    """A client's connection."""

    def authenticated(self) -> None:
        """Record that credentials sent over it were verified. Called from any thread."""

    @property
    def is_closed(self) -> bool:
        """Whether the client has hung up."""


class MessageClaim(Protocol):
    """The share of message memory that a WebSocket message from Rillbase's own server holds."""

    def retain(self) -> None:
        """Keep the share beyond the next `receive`, until one more `release`."""

    def release(self) -> None:
        """Release the share."""


def text_of(event: Message) -> bytes | None:
    """Return a WebSocket message's text as UTF-8, or None if it is not text.

    Rillbase's own server does not decode it, since the decoded text may take four times the memory.
    """
    utf8: bytes | None = event.get("utf8")
    if utf8 is not None:
        return utf8
    text: str | None = event.get("text")
    return None if text is None else text.encode()
