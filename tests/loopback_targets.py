"""What a tenant's URL can reach on a loopback port of the server's machine."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from threading import Event

from tests.foundation.outbound.servers import RawServer, say


def stay_silent(_: socket.socket, over: Event) -> None:
    over.wait(30)


@contextmanager
def loopback_targets() -> Iterator[Mapping[str, str]]:
    """Yield URLs by what answers: nothing, an error, other content, no HTTP, silence."""
    answers = {
        "an error": b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        "gone": b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n",
        "other content": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        "another protocol": b"-ERR unknown command\r\n",
        "too much": b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n" + b"x" * 100_000,
    }
    with ExitStack() as servers:
        urls = {}
        for name, answer in answers.items():
            running = servers.enter_context(RawServer())
            running.script = say(answer)
            urls[name] = f"http://127.0.0.1:{running.port}"
        silent = servers.enter_context(RawServer())
        silent.script = stay_silent
        closed = servers.enter_context(socket.create_server(("127.0.0.1", 0)))
        urls["silence"] = f"http://127.0.0.1:{silent.port}"
        urls["no TLS"] = f"https://127.0.0.1:{silent.port}"
        port = closed.getsockname()[1]
        closed.close()
        yield {**urls, "a closed port": f"http://127.0.0.1:{port}"}
