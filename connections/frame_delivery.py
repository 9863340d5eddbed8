"""How the frames of a connection reach its client."""

from __future__ import annotations

from collections.abc import Callable

from foundation.asgi import SEND_AT_ONCE, Scope, Send, SendAtOnce


class FrameDelivery:
    """Sends frames over one WebSocket."""

    __slots__ = ("_delivered", "_send", "_send_at_once")

    def __init__(self, scope: Scope, send: Send, delivered: Callable[[int], None]) -> None:
        """`delivered` is called with the size of each frame that is sent."""
        self._send = send
        self._send_at_once: SendAtOnce | None = scope.get("extensions", {}).get(SEND_AT_ONCE)
        self._delivered = delivered

    def at_once(self, frame: bytes) -> bool:
        """Send a frame unless that has to wait; return whether it was sent."""
        if self._send_at_once is None or not self._send_at_once(frame):
            return False
        self._delivered(len(frame))
        return True

    async def when_possible(self, frame: bytes) -> None:
        """Send a frame, and wait for the client if necessary."""
        self._delivered(len(frame))
        await self._send({"type": "websocket.send", "text": frame.decode()})
