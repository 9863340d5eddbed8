"""Reads a child's output line by line without blocking."""

import os
from collections.abc import Callable

CHUNK_BYTES = 65_536
# Longer lines are split, which bounds the launcher's memory.
MAX_LINE_BYTES = 65_536
MAX_DRAINED_CHUNKS = 32


class LineReader:
    """Splits the output of a pipe into lines and forwards them."""

    def __init__(self, descriptor: int, on_line: Callable[[bytes], None]) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self._on_line = on_line
        self._rest = b""

    def read(self) -> bool:
        """Read one chunk, if there is any; return False once the other side is closed."""
        try:
            chunk = os.read(self.descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return True
        if not chunk:
            self._flush()
            return False
        self._take(chunk)
        return True

    def drain(self) -> None:
        """Read what an exited process left in the pipe, whose buffer is small."""
        for _ in range(MAX_DRAINED_CHUNKS):
            if not self.read():
                return

    def _take(self, chunk: bytes) -> None:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            self._on_line(line)
        if len(self._rest) > MAX_LINE_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._rest:
            self._on_line(self._rest)
            self._rest = b""
