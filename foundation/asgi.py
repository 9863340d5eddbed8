"""The shapes of ASGI, as far as we use them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

#: The extension of a scope by which our own server tells which connection it came over.
CONNECTION = "rillbase.connection"


class Connection(Protocol):
    """A client's connection."""

    def authenticated(self) -> None:
        """Learn that credentials which came over it were verified. Called from any thread."""

    @property
    def is_closed(self) -> bool:
        """Whether the client has hung up."""


class Claim(Protocol):
    """What a WebSocket message, as our own server passes it on, has of the memory for all."""

    def retain(self) -> None:
        """Keep it beyond the next `receive`, until one more `release`."""

    def release(self) -> None:
        """Give it back."""


def text_of(event: Message) -> bytes | None:
    """Return a WebSocket message's text as UTF-8, None if it is no text.

    Our own server does not decode it, since a text may take four times the memory.
    """
    utf8: bytes | None = event.get("utf8")
    if utf8 is not None:
        return utf8
    text: str | None = event.get("text")
    return None if text is None else text.encode()
