"""Drains clients before the server exits.

On a signal, uvicorn closes connections before it notifies the application, so the signal is handled
here first. For `RILLBASE_DRAIN_S`, the server keeps serving but reports that it is not ready, so it
gets no new clients, and asks its clients to reconnect one by one. Then it notifies the remaining
clients and calls uvicorn's handler. A second signal skips the rest of the drain.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Protocol

#: How long the last notifications may take to be sent.
HEAD_START_S = 0.05


class DrainableClients(Protocol):
    """Clients with long-lived connections."""

    def ask_to_reconnect(self, within_s: float) -> None:
        """Ask the clients to reconnect at different times within this period. Return at once."""

    def send_goodbyes(self) -> None:
        """Notify every client that has not been notified yet."""


class Drain:
    """The drain of one process, beginning with the signal."""

    def __init__(self) -> None:
        self.has_begun = False

    def listen(self, clients: DrainableClients, drain_s: float) -> None:
        """Handle the signal in the running loop's process, if this is its main thread."""
        if threading.current_thread() is not threading.main_thread():
            return
        loop = asyncio.get_running_loop()
        before = signal.getsignal(signal.SIGTERM)
        if not callable(before):
            return
        previous_handler: Callable[[int, FrameType | None], object] = before

        def end(number: int) -> None:
            clients.send_goodbyes()
            loop.call_later(HEAD_START_S, previous_handler, number, None)

        def begin(number: int) -> None:
            is_repeated, self.has_begun = self.has_begun, True
            if is_repeated or drain_s <= 0:
                end(number)
                return
            clients.ask_to_reconnect(drain_s)
            loop.call_later(drain_s, end, number)

        def on_signal(number: int, frame: FrameType | None) -> None:
            loop.call_soon_threadsafe(begin, number)

        signal.signal(signal.SIGTERM, on_signal)


#: The drain of this process.
DRAIN = Drain()
