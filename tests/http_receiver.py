"""A real HTTP server in place of external ones: webhook receivers, key sets."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True)
class ReceivedRequest:
    """One request that arrived. Header names are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Receiver:
    """Records requests and responds as configured."""

    url: str = ""
    requests: list[ReceivedRequest] = field(default_factory=list)
    _status: int = 200
    _body: bytes = b""

    def answer(self, status: int, body: bytes = b"") -> None:
        """Respond like this to every request from now on."""
        self._status, self._body = status, body

    def _take(self, handler: BaseHTTPRequestHandler) -> None:
        length = int(handler.headers.get("Content-Length", "0"))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        body = handler.rfile.read(length)
        self.requests.append(ReceivedRequest(handler.command, handler.path, headers, body))
        handler.send_response(self._status)
        handler.send_header("Content-Length", str(len(self._body)))
        handler.end_headers()
        handler.wfile.write(self._body)


@contextmanager
def receiver() -> Iterator[Receiver]:
    """Serve on a free port of the loopback interface until the block ends."""
    state = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            state._take(self)

        do_POST = do_GET  # noqa: N815 -- the name that the standard library calls

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Stay silent."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        state.url = f"http://127.0.0.1:{http.server_address[1]}/"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield state
        finally:
            http.shutdown()
            thread.join()
