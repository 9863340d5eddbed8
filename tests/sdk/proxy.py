"""A TCP proxy that simulates a bad network: it cuts, rejects, stalls and delays connections."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

CHUNK_BYTES = 64 * 1024
#: With this, closing a socket resets its connection at once.
RESET = struct.pack("ii", 1, 0)


@dataclass(eq=False)
class Line:
    """One connection: the client's end and the server's."""

    ends: tuple[socket.socket, socket.socket]
    #: Set while what is sent also arrives.
    flows: threading.Event = field(default_factory=threading.Event)
    is_over: bool = False

    def cut(self) -> None:
        self.is_over = True
        self.flows.set()
        for end in self.ends:
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                end.shutdown(socket.SHUT_RDWR)
            end.close()


class Proxy:
    """Forwards connections to a server. Its behaviour may be changed at any time."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.refuses = False
        self.delay_s = 0.0
        #: As with proxies that know plain HTTP only.
        self.passes_web_sockets = True
        self._lines: set[Line] = set()
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def cut(self) -> None:
        """Reset every connection."""
        for line in self._taken_lines():
            line.cut()

    def go_silent(self) -> None:
        """Keep every current connection open but forward nothing more; later ones work."""
        for line in self._taken_lines():
            line.flows.clear()

    def half_close(self) -> None:
        """Half-close every connection: send nothing more to clients, but continue to read from
        them.
        """
        for line in self._taken_lines():
            with contextlib.suppress(OSError):
                line.ends[0].shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._listener.close()
        self.cut()

    def _taken_lines(self) -> list[Line]:
        with self._lock:
            return list(self._lines)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._begin(client)

    def _begin(self, client: socket.socket) -> None:
        at = urlsplit(self.target)
        if self.refuses:
            client.close()
            return
        try:
            server = socket.create_connection((at.hostname or "", at.port or 0))
        except OSError:
            client.close()
            return
        line = Line((client, server))
        line.flows.set()
        with self._lock:
            self._lines.add(line)
        for source, sink in ((client, server), (server, client)):
            threading.Thread(target=self._pump, args=(line, source, sink), daemon=True).start()

    def _pump(self, line: Line, source: socket.socket, sink: socket.socket) -> None:
        try:
            while chunk := source.recv(CHUNK_BYTES):
                if not self.passes_web_sockets and b"upgrade: websocket" in chunk.lower():
                    break
                line.flows.wait()
                time.sleep(self.delay_s)
                sink.sendall(chunk)
        except OSError:
            pass  # One end is gone; the other one learns it below.
        line.flows.wait()
        with self._lock:
            self._lines.discard(line)
        line.cut()


@contextmanager
def through_proxy(target: str) -> Iterator[Proxy]:
    """Open a proxy before a server until the block ends."""
    proxy = Proxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
