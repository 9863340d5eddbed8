"""Requests of a signed-in user during an attack: none may fail.

Each request opens a new connection, so a server that accepts no more connections is detected.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

PAUSE_S = 0.1
#: A request that takes longer counts as failed.
TIMEOUT_S = 10.0
_OK = 200


@dataclass(slots=True)
class Requests:
    """How a user's requests went."""

    sent: int = 0
    failed: int = 0


@contextmanager
def asking(port: int, key: str, path: str) -> Iterator[Requests]:
    """Send requests until the block ends."""
    requests, over = Requests(), threading.Event()

    def ask() -> None:
        while not over.wait(PAUSE_S):
            requests.sent += 1
            requests.failed += not _answered(port, key, path)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    try:
        yield requests
    finally:
        over.set()
        thread.join()


def _answered(port: int, key: str, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {key}"})
        answer = connection.getresponse()
        answer.read()
    except (OSError, http.client.HTTPException):
        return False
    else:
        return answer.status == _OK
    finally:
        connection.close()
