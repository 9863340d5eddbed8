"""The sending side of a connection, and whether its client keeps up."""

from __future__ import annotations

import array
import asyncio
import fcntl
import termios
from typing import NamedTuple

from uvicorn.protocols.http.flow_control import FlowControl

from rillbase_server.transport.rates import TransferProgress
from rillbase_server.transport.transport_limits import TransportLimits


class Backlog(NamedTuple):
    """The number of bytes waiting for a client, and since when."""

    since_s: float
    n_bytes: int


class OutgoingFlow(FlowControl):
    """Flow control that can tell how much has reached the client."""

    def __init__(self, transport: asyncio.Transport, bounds: TransportLimits) -> None:
        # The base's initializer would create an event, which idle connections never need.
        self._transport = transport
        self.read_paused = self.write_paused = False
        self._bounds = bounds
        self._progress = TransferProgress()
        self._is_held = False
        self._paused_s: float | None = None

    def hold_reading(self) -> None:
        """Stop reading until `release_reading`, regardless of other reasons to resume."""
        self._is_held = True
        self.pause_reading()

    def release_reading(self) -> None:
        self._is_held = False
        if self.read_paused:
            self.resume_reading()

    def resume_reading(self) -> None:
        if not self._is_held:
            super().resume_reading()

    async def drain(self) -> None:
        if self.write_paused:
            await self._is_writable_event.wait()

    def pause_writing(self) -> None:
        if not self.write_paused:
            self.write_paused, self._is_writable_event = True, asyncio.Event()
        if self._paused_s is None:
            self._paused_s = asyncio.get_running_loop().time()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._paused_s = None
        self._progress.pause()

    def backlog(self) -> Backlog | None:
        """Return the backlog; None if the client keeps up."""
        if self._paused_s is None:
            return None
        return Backlog(self._paused_s, self._transport.get_write_buffer_size())

    def is_stuck(self, now_s: float) -> bool:
        """Return whether the client reads its backlog too slowly."""
        if not self.write_paused and not self._transport.is_closing():
            return False
        # Nothing is added while writing is paused, so any decrease was read by the client.
        sent_bytes = -(self._transport.get_write_buffer_size() + self._unacknowledged())
        return self._progress.is_too_slow(
            now_s,
            sent_bytes,
            window_s=self._bounds.transfer_window_s,
            min_bytes_per_s=self._bounds.min_bytes_per_s,
        )

    def _unacknowledged(self) -> int:
        """Return the bytes in the kernel's send buffer, which may take megabytes at once."""
        sock = self._transport.get_extra_info("socket")
        queued = array.array("i", [0])
        try:
            fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, queued)
        except (AttributeError, OSError):
            return 0
        return queued[0]
