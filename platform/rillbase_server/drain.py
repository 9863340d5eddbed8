"""Tells clients that stay connected that the server is about to end.

The server closes connections as soon as it is asked to end, before anything of the application
hears of it. So the signal is heard here first: clients are told when to come back, and the
server's own handler follows in the loop's next turns.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from types import FrameType

#: What was told gets so long to leave.
HEAD_START_S = 0.05


def before_the_end(say: Callable[[], None]) -> None:
    """Call `say` in the running loop when the process is asked to end."""
    if threading.current_thread() is not threading.main_thread():
        return
    loop = asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGTERM)
    if not callable(before):
        return
    follow: Callable[[int, FrameType | None], object] = before

    def heard(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(say)
        loop.call_soon_threadsafe(loop.call_later, HEAD_START_S, follow, number, None)

    signal.signal(signal.SIGTERM, heard)
